//! For tests: runs a kernel's code with every buffer against a page that cannot be touched, in this process (`call`) or in
//! a process of its own (`host`), which may run on an emulated CPU and then also runs artifacts. `wire` is what the two
//! processes say to each other; main.rs is the other process.

pub mod call;
pub mod host;
pub mod wire;
