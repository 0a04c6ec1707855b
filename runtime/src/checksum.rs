//! CRC-32C (Castagnoli), eight bytes at a time from tables. What must not be here: what is summed, or when.

const POLY: u32 = 0x82F6_3B78;

const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut t = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut c = i as u32;
        let mut k = 0;
        while k < 8 {
            c = if c & 1 == 1 { (c >> 1) ^ POLY } else { c >> 1 };
            k += 1;
        }
        t[0][i] = c;
        i += 1;
    }
    let mut n = 1;
    while n < 8 {
        let mut i = 0;
        while i < 256 {
            let prev = t[n - 1][i];
            t[n][i] = (prev >> 8) ^ t[0][(prev & 0xff) as usize];
            i += 1;
        }
        n += 1;
    }
    t
}

/// A running sum.
#[derive(Clone, Copy)]
pub(crate) struct Crc(u32);

impl Crc {
    pub(crate) fn new() -> Crc {
        Crc(!0)
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        let mut c = self.0;
        let mut words = bytes.chunks_exact(8);
        for w in &mut words {
            let lo = c ^ u32::from_le_bytes([w[0], w[1], w[2], w[3]]);
            let (a, b) = ((lo & 0xff) as usize, ((lo >> 8) & 0xff) as usize);
            let (d, e) = (((lo >> 16) & 0xff) as usize, (lo >> 24) as usize);
            c = TABLES[7][a] ^ TABLES[6][b] ^ TABLES[5][d] ^ TABLES[4][e];
            c ^= TABLES[3][w[4] as usize] ^ TABLES[2][w[5] as usize];
            c ^= TABLES[1][w[6] as usize] ^ TABLES[0][w[7] as usize];
        }
        for &byte in words.remainder() {
            c = (c >> 8) ^ TABLES[0][((c ^ u32::from(byte)) & 0xff) as usize];
        }
        self.0 = c;
    }

    pub(crate) fn value(self) -> u32 {
        !self.0
    }
}

/// The sum of these bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let mut c = Crc::new();
    c.update(bytes);
    c.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
        assert_eq!(crc32c(&[0u8; 32]), 0x8A91_36AA);
    }

    #[test]
    fn pieces_give_the_same_sum() {
        let data: Vec<u8> = (0..1000u32).map(|i| (i * 7) as u8).collect();
        for cut in [0, 1, 7, 8, 9, 500, 999, 1000] {
            let mut c = Crc::new();
            c.update(&data[..cut]);
            c.update(&data[cut..]);
            assert_eq!(c.value(), crc32c(&data));
        }
    }
}
