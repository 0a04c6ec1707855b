//! stub
use super::Build;
impl Build {
pub(super) fn exp64(&mut self,a:u32)->u32{a} pub(super) fn log64(&mut self,a:u32)->u32{a} pub(super) fn tanh64(&mut self,a:u32)->u32{a} pub(super) fn erf64(&mut self,a:u32)->u32{a}
pub(super) fn sin64(&mut self,a:u32,_:bool)->u32{a} pub(super) fn sin32(&mut self,a:u32,_:bool)->u32{a}
pub(super) fn pow64(&mut self,a:u32,_:u32)->u32{a} pub(super) fn pow32(&mut self,a:u32,_:u32)->u32{a}
}
