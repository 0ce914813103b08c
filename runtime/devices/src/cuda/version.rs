//! Versions of CUDA, PTX and a device's hardware.

use kernel_dsl::compiler::Target;
use serde::Serialize;
use std::fmt;

/// A version of CUDA.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[allow(missing_docs)]
pub struct CudaVersion {
    pub major: u32,
    pub minor: u32,
}

impl CudaVersion {
    /// The oldest CUDA version whose driver can run our kernels: the first with sm_61 (PTX 5.0;
    /// driver 367.48 on Linux, 369.30 on Windows). All driver functions in use are older.
    pub const OLDEST: CudaVersion = CudaVersion { major: 8, minor: 0 };

    /// Converts the number that `cuDriverGetVersion` returns: 1000 · major + 10 · minor.
    pub(super) fn from_driver(version: i32) -> CudaVersion {
        let version = version.max(0) as u32;
        CudaVersion { major: version / 1000, minor: version % 1000 / 10 }
    }
}

impl fmt::Display for CudaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A device's compute capability.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Capability {
    pub major: u32,
    pub minor: u32,
}

impl Capability {
    /// Returns the capability of the oldest device that runs PTX for `target`.
    pub(crate) const fn of(target: Target) -> Capability {
        let sm = target.sm() as u32;
        Capability { major: sm / 10, minor: sm % 10 }
    }
}

/// The oldest device that runs sm_61 PTX.
pub(crate) const OLDEST_CAPABILITY: Capability = Capability::of(Target::SM_61);

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// PTX versions and the first CUDA version whose driver reads each, from the release notes in the
/// PTX ISA manual.
const PTX: [((u32, u32), CudaVersion); 20] = [
    ((5, 0), cuda(8, 0)),
    ((6, 0), cuda(9, 0)),
    ((6, 1), cuda(9, 1)),
    ((6, 2), cuda(9, 2)),
    ((6, 3), cuda(10, 0)),
    ((6, 4), cuda(10, 1)),
    ((6, 5), cuda(10, 2)),
    ((7, 0), cuda(11, 0)),
    ((7, 1), cuda(11, 1)),
    ((7, 2), cuda(11, 2)),
    ((7, 3), cuda(11, 3)),
    ((7, 4), cuda(11, 4)),
    ((7, 5), cuda(11, 5)),
    ((7, 6), cuda(11, 6)),
    ((7, 7), cuda(11, 7)),
    ((7, 8), cuda(11, 8)),
    ((8, 0), cuda(12, 0)),
    ((8, 1), cuda(12, 1)),
    ((8, 2), cuda(12, 2)),
    ((8, 3), cuda(12, 3)),
];

const fn cuda(major: u32, minor: u32) -> CudaVersion {
    CudaVersion { major, minor }
}

/// Returns the version of a PTX module and the CUDA version that can read it; `None` for versions
/// outside the table.
pub(super) fn required_versions(ptx: &str) -> Option<((u32, u32), CudaVersion)> {
    let version = ptx_version(ptx)?;
    PTX.iter().find(|(v, _)| *v >= version).map(|(_, needed)| (version, *needed))
}

/// Returns the version in the `.version` line of a PTX module.
fn ptx_version(ptx: &str) -> Option<(u32, u32)> {
    let line = ptx.lines().map(str::trim).find(|l| l.starts_with(".version"))?;
    let (major, minor) = line.split_whitespace().nth(1)?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_numbers_convert_to_versions() {
        assert_eq!(CudaVersion::from_driver(11040), cuda(11, 4));
        assert_eq!(CudaVersion::from_driver(8000), cuda(8, 0));
        assert_eq!(CudaVersion::from_driver(13020).to_string(), "13.2");
    }
}
