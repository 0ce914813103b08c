//! An error code of the driver, with its meaning.

/// The result of a driver function: 0, or an error code.
pub(super) type DriverStatus = u32;

const OUT_OF_MEMORY: DriverStatus = 2;

/// A call of the CUDA driver that failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{doing}: the CUDA driver returned {name} ({code}){}", described(.description))]
pub struct DriverError {
    pub(super) doing: String,
    pub(super) code: DriverStatus,
    pub(super) name: String,
    pub(super) description: String,
}

impl DriverError {
    /// Returns the driver's error number.
    pub fn code(&self) -> u32 {
        self.code
    }

    /// Returns the driver's name of the error, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the device's context is unusable after the error: the driver returns the
    /// same error to every later call.
    pub fn loses_context(&self) -> bool {
        // A destroyed context (201, 709), uncorrectable errors of ECC memory (214) and NVLink
        // (220), and a contained error (226). An illegal address (700), a launch timeout (702), an
        // assertion (710), hardware faults (714 to 719), and a leak of tensor memory (721).
        matches!(self.code, 201 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721)
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        self.code == OUT_OF_MEMORY
    }
}

fn described(description: &str) -> String {
    if description.is_empty() { String::new() } else { format!(", {description}") }
}
