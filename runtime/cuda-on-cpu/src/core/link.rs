//! Ahead-of-time compilation. This device has no machine code: the image is the validated PTX after
//! a marker line.
//!
//! ```text
//! // cuda-on-cpu, in place of machine code for sm_61
//! .version 6.0 …
//! ```
//!
//! A link state compiles one module; several modules cannot be joined.

use super::error::{Error, Result};
use super::handle::{Handle, Object};
use cudarc::driver::sys::CUresult;
use kernel_dsl_compiler::target::Target;
use std::sync::Mutex;

const BEFORE: &str = "// cuda-on-cpu, in place of machine code for ";

/// A link state.
#[derive(Debug)]
pub struct Link {
    /// The link state's handle.
    pub handle: Handle,
    /// The added input, then the compiled image, which stays at its address until the link state is
    /// destroyed.
    pub state: Mutex<State>,
}

/// The progress of a link state.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum State {
    Empty,
    Added(String),
    Complete(Box<[u8]>),
}

impl Object for Link {
    const KIND: u8 = 0xC9;
    const NAME: &'static str = "link state";
}

impl State {
    /// Adds validated PTX.
    pub fn add(&mut self, ptx: String) -> Result {
        match self {
            State::Empty => {
                *self = State::Added(ptx);
                Ok(())
            }
            State::Added(_) => Err(Error::unsupported("joining two modules is not supported")),
            State::Complete(_) => Err(Error::value("an addition after the end of linking")),
        }
    }

    /// Returns the compiled image.
    pub fn complete(&mut self, device: Target) -> Result<&[u8]> {
        if let State::Added(ptx) = self {
            // The image ends with a NUL, because programs load it as text.
            *self = State::Complete(format!("{BEFORE}{device}\n{ptx}\0").into_bytes().into());
        }
        match self {
            State::Complete(image) => Ok(image),
            _ => Err(Error::value("nothing was added")),
        }
    }
}

/// Returns the PTX of a compiled image, or plain PTX text unchanged.
pub fn ptx(image: &str, device: Target) -> Result<&str> {
    let Some(rest) = image.strip_prefix(BEFORE) else { return Ok(image) };
    match rest.split_once('\n') {
        Some((target, ptx)) if target == device.to_string() => Ok(ptx),
        _ => {
            let why = format!("the image was compiled for another device than {device}");
            Err(Error::new(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, why))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linked_images_load_only_on_their_target() {
        let mut state = State::Empty;
        assert!(state.complete(Target::SM_61).is_err());
        state.add(".version 6.0".into()).unwrap();
        assert_eq!(state.add("x".into()).unwrap_err().code, CUresult::CUDA_ERROR_NOT_SUPPORTED);
        let image = state.complete(Target::SM_61).unwrap().to_vec();
        assert_eq!(state.complete(Target::SM_61).unwrap(), image);
        assert!(state.add("x".into()).is_err());
        let text = std::str::from_utf8(&image).unwrap().trim_end_matches('\0');
        assert_eq!(ptx(text, Target::SM_61).unwrap(), ".version 6.0");
        assert_eq!(ptx(text, Target::SM_90).unwrap_err().code, CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU);
        assert_eq!(ptx("// text", Target::SM_61).unwrap(), "// text");
    }
}
