//! Errors of `kernels run`.

use runtime::ptx::Mismatch;
use std::io;
use std::path::PathBuf;

/// Error that kept the kernel from running.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("cannot read {}: {source}", .file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", .file.display())]
    Write { file: PathBuf, source: io::Error },
    /// Error in the PTX text, rendered.
    #[error("{0}")]
    Text(String),
    #[error("{file} has no kernel")]
    NoEntry { file: String },
    #[error("{file} has {}: name one", .entries.join(", "))]
    Entries { file: String, entries: Vec<String> },
    #[error("{file} has {}, but no kernel `{name}`", .entries.join(", "))]
    NoSuchEntry { file: String, entries: Vec<String>, name: String },
    #[error("the kernel does not say how many threads a block has; give --block{}", at_most(.most))]
    NoBlock { most: Option<[u32; 3]> },
    #[error("a block has at most {most} threads in {axis}, and {given} are given")]
    Block { most: u32, axis: &'static str, given: u32 },
    #[error(
        "a block has at most {most} bytes of shared memory on sm_{target}, and the launch takes more: the kernel \
         declares {declared} bytes, and --shared adds {added}"
    )]
    Shared { target: u16, most: u32, declared: u32, added: u32 },
    #[error("two buffers are called `{0}`")]
    DuplicateBuffer(String),
    #[error("cannot allocate buffer `{name}`: out of memory")]
    Memory { name: String },
    #[error("no buffer is called `{name}`; {}", known_buffers(.known))]
    NoBuffer { name: String, known: Vec<String> },
    #[error("{} has {bytes} bytes, which {fits}", .file.display())]
    Length { file: PathBuf, bytes: usize, fits: String },
    #[error("{}: {why}", .file.display())]
    Numpy { file: PathBuf, why: String },
    #[error("parameter {number}, `{name}`, is {ty}, but {given} was given")]
    Type { number: usize, name: String, ty: String, given: String },
    #[error("{mismatch}\n{entry} takes {takes}")]
    Mismatch { mismatch: Mismatch, entry: String, takes: String },
}

impl Error {
    /// Returns whether the error is in the PTX file, and not in the arguments.
    pub(crate) fn is_of_the_file(&self) -> bool {
        matches!(self, Error::Text(_))
    }
}

/// Says how many threads the kernel allows, if its PTX does.
fn at_most(most: &Option<[u32; 3]>) -> String {
    match most {
        Some([x, y, z]) => {
            let threads = x.saturating_mul(*y).saturating_mul(*z);
            format!(", of {threads} threads at most (.maxntid {x}, {y}, {z})")
        }
        None => String::new(),
    }
}

fn known_buffers(known: &[String]) -> String {
    if known.is_empty() { "none is given".to_string() } else { format!("there are {}", known.join(", ")) }
}
