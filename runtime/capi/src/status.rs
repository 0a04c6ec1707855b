//! How calls end: codes, the text of a thread's last failure, and the place where panics stop. What must not be here: what
//! calls do.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tgc_runtime::{Code, Error, Fault};

/// `tgc_status`.
pub type Status = i32;

/// `TGC_OK`.
pub(crate) const OK: Status = 0;
/// `TGC_ERROR_BUG`.
pub(crate) const BUG: Status = 201;

/// The status of a code of the runtime: its number.
pub(crate) const fn number(code: Code) -> Status {
    match code {
        Code::NotArtifact => 1,
        Code::Version => 2,
        Code::Damaged => 3,
        Code::NoImage => 4,
        Code::CodeMap => 5,
        Code::Io => 6,
        Code::NotBuilt => 7,
        Code::EntryName => 10,
        Code::InputName => 11,
        Code::InputDtype => 12,
        Code::InputRank => 13,
        Code::InputDim => 14,
        Code::Guard => 15,
        Code::Variant => 16,
        Code::Size => 17,
        Code::Memory => 18,
        Code::CallerBuffer => 19,
        Code::Data => 20,
        Code::Threads => 21,
        Code::Usage => 22,
    }
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = error.faults.first().map_or(BUG, |f| number(f.code));
        Failure { status, text: error.to_string() }
    }
}

impl Failure {
    /// The failure of these faults, if there are any.
    pub(crate) fn collect(faults: Vec<Fault>) -> Result<(), Failure> {
        if faults.is_empty() { Ok(()) } else { Err(Error { faults }.into()) }
    }

    pub(crate) fn new(code: Code, message: impl Into<String>, help: impl Into<String>) -> Failure {
        Error { faults: vec![Fault { code, message: message.into(), help: help.into() }] }.into()
    }

    /// The caller's fault.
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(Code::Usage, message, help)
    }

    /// Our fault.
    pub(crate) fn bug(message: &str, help: &str) -> Failure {
        Failure { status: BUG, text: format!("error[E-RUN-{BUG}]: {message}\n  help: {help}") }
    }

    fn panic(payload: &(dyn Any + Send)) -> Failure {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let help = "this is a bug in tgc: please report it with the artifact and the calls";
        Failure::bug(&format!("the runtime failed: {text}"), help)
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// The text of this thread's last failure.
pub(crate) fn last() -> *const c_char {
    // While a thread ends its text may be gone.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

fn remember(text: String) {
    let mut bytes = text.into_bytes();
    bytes.retain(|b| *b != 0);
    // Without 0 bytes it is a C string.
    let text = CString::new(bytes).unwrap_or_default();
    let _ = LAST.try_with(|last| *last.borrow_mut() = text);
}

fn attempt<T>(call: impl FnOnce() -> Result<T, Failure>) -> Result<T, Status> {
    let done = catch_unwind(AssertUnwindSafe(call));
    let failure = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::panic(&*payload),
    };
    remember(failure.text);
    Err(failure.status)
}

/// Makes a call that only fails or not.
pub(crate) fn status(call: impl FnOnce() -> Result<(), Failure>) -> Status {
    attempt(call).map_or_else(|status| status, |()| OK)
}

/// Makes a call that gives a value, or `otherwise` where it fails.
pub(crate) fn value<T>(otherwise: T, call: impl FnOnce() -> Result<T, Failure>) -> T {
    attempt(call).unwrap_or(otherwise)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> String {
        LAST.with(|last| last.borrow().to_str().unwrap().to_string())
    }

    #[test]
    fn panics_become_a_status_with_their_message() {
        assert_eq!(said(), "");
        let index = 3;
        let formatted = status(|| panic!("no slot {index}"));
        assert_eq!(formatted, BUG);
        assert!(
            said().starts_with("error[E-RUN-201]: the runtime failed: no slot 3\n  help: "),
            "{}",
            said()
        );
        assert_eq!(status(|| panic!("plain")), BUG);
        assert!(said().contains("plain"));
        assert_eq!(status(|| std::panic::panic_any(5)), BUG);
        assert!(said().contains("no message"));
        assert_eq!(value(7, || panic!("again")), 7);
        assert!(said().contains("again"));
    }

    #[test]
    fn failures_are_remembered_a_thread_and_survive_success() {
        assert_eq!(status(|| Err(Failure::usage("a\0b", "c"))), number(Code::Usage));
        assert_eq!(said(), "error[E-RUN-022]: ab\n  help: c");
        std::thread::spawn(|| assert_eq!(said(), "")).join().unwrap();
        assert_eq!(status(|| Ok(())), OK);
        assert_eq!(said(), "error[E-RUN-022]: ab\n  help: c");
    }
}
