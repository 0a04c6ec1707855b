//! The C interface from C and C++: programs are compiled against the header and both libraries, and run on artifacts made
//! of hand-assembled kernels. Real models are run by the end-to-end tests.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

mod artifacts;
mod library;
#[allow(dead_code)]
#[path = "../../../tests/runtime/machine.rs"]
mod machine;
mod programs;
