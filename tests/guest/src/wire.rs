//! Messages between a test and the process that runs code for it: a length, then fields one after another, numbers as 64
//! bits, lists with their length first.

use crate::call::Call;
use std::io::{self, Read, Write};

/// No message is longer.
const LIMIT: u64 = 4 << 30;

/// An array of an artifact's inputs or outputs; inputs come in the order of the entry and need no name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Array {
    pub name: String,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

/// What is asked for.
#[derive(Debug, PartialEq)]
pub enum Request {
    /// Code for the calls that follow.
    Load(Vec<u8>),
    /// Run a kernel.
    Call(Call),
    /// An artifact for the runs that follow.
    Open(Vec<u8>),
    /// Run an entry of it with this many threads.
    Run { entry: String, threads: u64, inputs: Vec<Array> },
}

/// What is answered.
#[derive(Debug, PartialEq)]
pub enum Answer {
    /// Loaded, or opened.
    Done,
    /// Arguments of a kernel after its call.
    Buffers(Vec<Vec<u8>>),
    /// A kernel ended at this site.
    Site(i64),
    /// Outputs of a run.
    Arrays(Vec<Array>),
    /// It could not be done.
    Failed(String),
}

/// A message being written.
#[derive(Default)]
struct Out(Vec<u8>);

impl Out {
    fn int(&mut self, v: i64) {
        self.0.extend(v.to_le_bytes());
    }

    fn bytes(&mut self, b: &[u8]) {
        self.int(b.len() as i64);
        self.0.extend(b);
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Out, &T)) {
        self.int(items.len() as i64);
        items.iter().for_each(|i| each(self, i));
    }

    fn arrays(&mut self, arrays: &[Array]) {
        self.list(arrays, |o, a| {
            o.bytes(a.name.as_bytes());
            o.list(&a.shape, |o, d| o.int(*d as i64));
            o.bytes(&a.bytes);
        });
    }

    fn send(self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&(self.0.len() as u64).to_le_bytes())?;
        to.write_all(&self.0)?;
        to.flush()
    }
}

/// A message being read.
struct In<'a>(&'a [u8]);

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a message with {what}"))
}

impl In<'_> {
    fn int(&mut self) -> io::Result<i64> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(|| wrong("a missing number"))?;
        self.0 = rest;
        Ok(i64::from_le_bytes(*head))
    }

    fn size(&mut self) -> io::Result<usize> {
        usize::try_from(self.int()?).map_err(|_| wrong("a negative size"))
    }

    fn bytes(&mut self) -> io::Result<Vec<u8>> {
        let len = self.size()?;
        let (head, rest) = self.0.split_at_checked(len).ok_or_else(|| wrong("missing bytes"))?;
        self.0 = rest;
        Ok(head.to_vec())
    }

    fn text(&mut self) -> io::Result<String> {
        String::from_utf8(self.bytes()?).map_err(|_| wrong("a text that is none"))
    }

    fn list<T>(&mut self, mut each: impl FnMut(&mut Self) -> io::Result<T>) -> io::Result<Vec<T>> {
        (0..self.size()?).map(|_| each(self)).collect()
    }

    fn arrays(&mut self) -> io::Result<Vec<Array>> {
        self.list(|i| Ok(Array { name: i.text()?, shape: i.list(In::size)?, bytes: i.bytes()? }))
    }
}

/// The next message; None where the other side has ended between messages.
fn receive(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut len = [0; 8];
    match from.read(&mut len)? {
        0 => return Ok(None),
        some => from.read_exact(&mut len[some..])?,
    }
    let len = u64::from_le_bytes(len);
    if len > LIMIT {
        return Err(wrong("too many bytes"));
    }
    let mut body = Vec::new();
    if from.take(len).read_to_end(&mut body)? as u64 == len { Ok(Some(body)) } else { Err(wrong("an end")) }
}

impl Request {
    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut o = Out::default();
        match self {
            Request::Load(code) => {
                o.int(0);
                o.bytes(code);
            }
            Request::Call(c) => {
                o.int(1);
                o.int(c.at as i64);
                o.list(&c.buffers, |o, b| o.bytes(b));
                o.list(&c.params, |o, p| o.int(*p));
                [c.scratch as i64, c.tiles, c.grain, i64::from(c.at_end)].iter().for_each(|v| o.int(*v));
            }
            Request::Open(artifact) => {
                o.int(2);
                o.bytes(artifact);
            }
            Request::Run { entry, threads, inputs } => {
                o.int(3);
                o.bytes(entry.as_bytes());
                o.int(*threads as i64);
                o.arrays(inputs);
            }
        }
        o.send(to)
    }

    /// The next request; None after the last.
    pub fn receive(from: &mut impl Read) -> io::Result<Option<Request>> {
        let Some(body) = receive(from)? else { return Ok(None) };
        let mut i = In(&body);
        Ok(Some(match i.int()? {
            0 => Request::Load(i.bytes()?),
            1 => Request::Call(Call {
                at: i.int()? as u64,
                buffers: i.list(In::bytes)?,
                params: i.list(In::int)?,
                scratch: i.size()? as u64,
                tiles: i.int()?,
                grain: i.int()?,
                at_end: i.int()? != 0,
            }),
            2 => Request::Open(i.bytes()?),
            3 => Request::Run { entry: i.text()?, threads: i.size()? as u64, inputs: i.arrays()? },
            _ => return Err(wrong("an unknown request")),
        }))
    }
}

impl Answer {
    pub fn send(&self, to: &mut impl Write) -> io::Result<()> {
        let mut o = Out::default();
        match self {
            Answer::Done => o.int(0),
            Answer::Buffers(b) => {
                o.int(1);
                o.list(b, |o, b| o.bytes(b));
            }
            Answer::Site(s) => {
                o.int(2);
                o.int(*s);
            }
            Answer::Arrays(a) => {
                o.int(3);
                o.arrays(a);
            }
            Answer::Failed(why) => {
                o.int(4);
                o.bytes(why.as_bytes());
            }
        }
        o.send(to)
    }

    /// The next answer; None where there is none.
    pub fn receive(from: &mut impl Read) -> io::Result<Option<Answer>> {
        let Some(body) = receive(from)? else { return Ok(None) };
        let mut i = In(&body);
        Ok(Some(match i.int()? {
            0 => Answer::Done,
            1 => Answer::Buffers(i.list(In::bytes)?),
            2 => Answer::Site(i.int()?),
            3 => Answer::Arrays(i.arrays()?),
            4 => Answer::Failed(i.text()?),
            _ => return Err(wrong("an unknown answer")),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_as_they_were_sent() {
        let call = Call {
            at: 64,
            buffers: vec![vec![], vec![1, 2, 3]],
            params: vec![-5, i64::MAX],
            scratch: 7,
            tiles: 1 << 40,
            grain: 2,
            at_end: true,
        };
        let array = Array { name: "ä".into(), shape: vec![0, 3], bytes: vec![9; 4] };
        let run = Request::Run { entry: "main".into(), threads: 2, inputs: vec![array.clone()] };
        for r in [Request::Load(vec![1]), Request::Call(call), Request::Open(vec![]), run] {
            let mut sent = Vec::new();
            r.send(&mut sent).unwrap();
            assert_eq!(Request::receive(&mut &sent[..]).unwrap(), Some(r));
            assert!(Request::receive(&mut &sent[..sent.len() - 1]).is_err());
        }
        let answers = [
            Answer::Done,
            Answer::Buffers(vec![vec![1]]),
            Answer::Site(-1),
            Answer::Arrays(vec![array]),
            Answer::Failed("no".into()),
        ];
        for a in answers {
            let mut sent = Vec::new();
            a.send(&mut sent).unwrap();
            assert_eq!(Answer::receive(&mut &sent[..]).unwrap(), Some(a));
        }
        assert_eq!(Answer::receive(&mut &[][..]).unwrap(), None);
    }
}
