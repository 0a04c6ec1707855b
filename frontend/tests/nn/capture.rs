//! A traced model computes what the eager one does, at several sizes, and knows its names and lines.

use tgc_frontend::nn::layers::*;
use tgc_frontend::nn::*;

#[derive(Module)]
struct Block {
    norm: LayerNorm,
    fc: Linear,
}

impl Block {
    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        x + self.fc.forward(&self.norm.forward(x)).relu()
    }
}

#[derive(Module)]
struct Net {
    embed: Linear,
    blocks: Vec<Block>,
    head: Sequential,
}

impl Net {
    fn new() -> Net {
        manual_seed(1);
        Net {
            embed: Linear::new(6, 8),
            blocks: (0..2).map(|_| Block { norm: LayerNorm::new(8), fc: Linear::new(8, 8) }).collect(),
            head: Sequential::new().push(Linear::new(8, 5)).push(GELU::new()).push(Linear::new(5, 3)),
        }
    }

    #[forward]
    fn forward(&self, x: &Tensor) -> Tensor {
        let mut x = self.embed.forward(x);
        for b in &self.blocks {
            x = b.forward(&x);
        }
        self.head.forward(&x)
    }
}

fn close(a: &Tensor, b: &Tensor) {
    assert_eq!(a.shape(), b.shape());
    for (x, y) in a.to_vec().iter().zip(b.to_vec()) {
        assert!((x - y).abs() <= 1e-6 + 1e-5 * y.abs(), "{x} and {y}");
    }
}

#[test]
fn eager_equals_traced_at_three_sizes() {
    let net = Net::new();
    let p = trace(&net, [spec("x", F32, ("batch", "seq", 6))], |m, [x]| m.forward(&x)).unwrap();
    for (b, s) in [(1, 1), (2, 5), (7, 3)] {
        let x = Tensor::randn((b, s, 6));
        close(&p.run("forward", std::slice::from_ref(&x)).unwrap()[0], &net.forward(&x));
    }
}

#[test]
fn names_are_those_of_the_state_dict() {
    let net = Net::new();
    let p = trace(&net, [spec("x", F32, ("batch", 6))], |m, [x]| m.forward(&x)).unwrap();
    let names: Vec<&str> = p.module().weights.keys().map(String::as_str).collect();
    let mut keys: Vec<String> = net.state_dict().into_keys().collect();
    assert_eq!(keys[..4], ["embed.weight", "embed.bias", "blocks.0.norm.weight", "blocks.0.norm.bias"]);
    assert_eq!(keys.last().map(String::as_str), Some("head.2.bias"));
    let mut names: Vec<String> = names.into_iter().map(String::from).collect();
    names.sort();
    keys.sort();
    assert_eq!(names, keys);
}

#[test]
fn nodes_know_their_line_and_module() {
    let net = Net::new();
    let p = trace(&net, [spec("x", F32, ("batch", 6))], |m, [x]| m.forward(&x)).unwrap();
    let g = &p.module().entries["forward"].body;
    let places: Vec<String> = g.ids().iter().map(|id| g.loc(*id).place.to_string()).collect();
    assert!(
        places.iter().any(|p| p.contains("nn/capture.rs:") && p.ends_with("(blocks.1.fc)")),
        "{places:?}"
    );
    assert!(places.iter().any(|p| p.ends_with("(head.1)")), "{places:?}");
    assert!(!places.iter().any(|p| p.contains("src/nn/")), "{places:?}");
}

#[test]
fn dims_compute_and_compare_where_the_range_decides() {
    let net = Net::new();
    let x = spec("x", F32, (dim("batch").range(2..=8), 6));
    let p = trace(&net, [x], |_, [x]| {
        let b = x.size(0);
        assert!(b > 1 && b <= 8 && b * 2 + 1 >= 5);
        x.reshape((b * 2, 3)).sum(&[1], false)
    })
    .unwrap();
    let y = p.run("forward", &[Tensor::ones((3, 6), F32)]).unwrap();
    assert_eq!(y[0].to_vec(), [3.0; 6]);
}

#[test]
fn a_state_is_written_by_its_entry() {
    #[derive(Module)]
    struct Counter {
        n: State,
    }
    let m = Counter { n: State::new(Tensor::zeros(2, F32)) };
    let p = trace(&m, [spec("x", F32, 2)], |m, [x]| {
        m.n.set(&(&m.n + &x));
        m.n.get() * 10.0
    });
    let p = p.unwrap();
    let g = &p.module().entries["forward"].body;
    assert_eq!(g.outputs().iter().filter(|o| o.state.as_deref() == Some("n")).count(), 1);
    assert_eq!(m.n.to_vec(), [0.0, 0.0]);
}

#[test]
fn saves_and_loads() {
    let dir = std::env::temp_dir().join(format!("tgc-nn-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (a, b) = (Net::new(), Net::new());
    manual_seed(2);
    a.head.parameters()[0].set(&Tensor::randn((5, 8)));
    let file = dir.join("net.safetensors");
    a.save(&file).unwrap();
    b.load(&file).unwrap();
    let x = Tensor::randn((2, 6));
    assert_eq!(a.forward(&x).to_vec(), b.forward(&x).to_vec());
    let p = trace(&a, [spec("x", F32, ("batch", 6))], |m, [x]| m.forward(&x)).unwrap();
    p.save(dir.join("net.tgir")).unwrap();
    let back = tgc_ir::weights::load_module(&dir.join("net.tgir")).unwrap();
    assert_eq!(tgc_ir::text::print_module(&back), tgc_ir::text::print_module(p.module()));
    std::fs::remove_dir_all(&dir).unwrap();
}
