//! Functions of the driver by name, called with integers.

use std::collections::BTreeMap;

/// A function of the driver, which takes integers and pointers and returns a code.
#[derive(Clone, Copy)]
pub struct Function {
    pub name: &'static str,
    at: *mut std::ffi::c_void,
}

/// The code of an internal error of the library.
const UNKNOWN: u32 = 999;

/// The driver's library, which stays loaded.
pub struct Library(libloading::os::unix::Library);

impl Library {
    /// Opens the library.
    pub fn open() -> Library {
        // SAFETY: the library of the driver has no code that runs when it is loaded.
        let driver = unsafe { libloading::os::unix::Library::new("libcuda.so.1") };
        let driver =
            driver.unwrap_or_else(|why| crate::failed("no driver: run this under `cuda-on-cpu`", &why.to_string()));
        Library(driver)
    }

    /// Finds a function, which the driver must have.
    pub fn find(&self, name: &'static str) -> Function {
        // SAFETY: the name is that of a function. `main` keeps the library to its end.
        let at = unsafe { self.0.get::<*mut std::ffi::c_void>(name.as_bytes()).map(|f| f.as_raw_ptr()) };
        let at = at.unwrap_or_else(|why| crate::failed("the driver lacks a function", &why.to_string()));
        Function { name, at }
    }
}

impl Function {
    /// Calls the function, and ends the process at an internal error.
    ///
    /// # Safety
    /// The function takes as many integers or pointers as there are arguments. Pointers that the
    /// driver reads or writes are valid for it. Handles may have any value.
    pub unsafe fn call(self, arguments: &[u64]) -> u32 {
        macro_rules! called {
            ($($i:literal)*) => {{
                // SAFETY: the caller guarantees the number of arguments. On Linux for x86-64 and
                // AArch64, integers and pointers of up to 64 bits are passed alike.
                let f: unsafe extern "C" fn($(called!(@u64 $i)),*) -> u32 = unsafe { std::mem::transmute(self.at) };
                // SAFETY: the caller guarantees that pointers are valid.
                unsafe { f($(arguments[$i]),*) }
            }};
            (@u64 $i:literal) => { u64 };
        }
        let code = match arguments.len() {
            0 => called!(),
            1 => called!(0),
            2 => called!(0 1),
            3 => called!(0 1 2),
            4 => called!(0 1 2 3),
            5 => called!(0 1 2 3 4),
            6 => called!(0 1 2 3 4 5),
            7 => called!(0 1 2 3 4 5 6),
            8 => called!(0 1 2 3 4 5 6 7),
            10 => called!(0 1 2 3 4 5 6 7 8 9),
            11 => called!(0 1 2 3 4 5 6 7 8 9 10),
            n => unreachable!("no function of the table takes {n} arguments"),
        };
        // A linker whose modules do not fit together gives this code too.
        if code == UNKNOWN && self.name != "cuLinkComplete" {
            crate::failed("an internal error of the driver", &format!("{}({arguments:x?})", self.name));
        }
        code
    }
}

/// Prints how often each answer was given.
pub fn print(answers: &BTreeMap<u32, u64>) {
    let list: Vec<_> = answers.iter().map(|(code, count)| format!("{code}: {count}")).collect();
    println!("answers by code: {}", list.join(", "));
}
