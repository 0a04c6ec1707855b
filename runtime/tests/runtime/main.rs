//! The runtime's tests on whole artifacts with hand-assembled kernels.
#![cfg(target_arch = "x86_64")]

mod bind;
mod damage;
mod load;
mod machine;
mod planner;
mod run;
mod segments;
