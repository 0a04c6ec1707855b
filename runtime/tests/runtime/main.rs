//! The runtime's tests on whole artifacts with hand-assembled kernels.
#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]

mod bind;
mod damage;
mod load;
mod machine;
mod planner;
mod run;
mod segments;
