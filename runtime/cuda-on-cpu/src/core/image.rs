//! Parsing and validation of module images.

use super::error::Error;
use cudarc::driver::sys::CUresult;
use kernel_dsl_compiler::ptx::ast::ArchitectureVariant;
use kernel_dsl_compiler::ptx::check::Reason;
use kernel_dsl_compiler::ptx::parse::{ParseMistake, SUPPORTED_VERSIONS, parse};
use kernel_dsl_compiler::ptx::{Module, Version};
use kernel_dsl_compiler::target::Target;

/// The latest PTX version that the parser supports.
pub const LATEST_VERSION: Version = *SUPPORTED_VERSIONS.end();

/// The driver version that this library reports: that of CUDA 12.9, whose compiler is the last for
/// sm_61.
pub const DRIVER: i32 = 12090;

/// The magic numbers of binary images: an ELF object, and both wrappers of a fat binary from nvcc.
const BINARIES: [&[u8]; 3] = [b"\x7fELF", &0xBA55_ED50u32.to_le_bytes(), &0x4662_43B1u32.to_le_bytes()];

/// Returns whether the image is machine code, which this device cannot run.
pub fn is_binary(image: &[u8]) -> bool {
    BINARIES.iter().any(|start| image.starts_with(start))
}

/// Returns the error for machine code.
pub fn refuse_binary() -> Error {
    let why = "the image is machine code, a cubin or a fat binary; this device runs PTX text";
    Error::new(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU, why)
}

/// Parses PTX for a device. On failure also returns a log for the program.
pub fn read(text: &str, device: Target) -> std::result::Result<Module, (Error, String)> {
    let refuse = |code, log: String| Err((Error::new(code, log.clone()), log));
    if let Some(version) = version(text).filter(|version| *version > LATEST_VERSION) {
        let log =
            format!("ptx fatal: version {version} of PTX is later than {LATEST_VERSION}, the latest supported version");
        return refuse(CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, log);
    }
    let module = match parse(text) {
        Ok(module) => module,
        Err(errors) => {
            let is_later = target(text).is_some_and(|sm| sm > LATEST_COMPLETE_TARGET);
            let of_parser = errors.0.iter().any(|e| is_missing(&e.mistake, is_later));
            let lines: Vec<String> = errors
                .0
                .iter()
                .map(|e| format!("ptx error: line {}, column {}: {}", e.line, e.column, e.mistake))
                .collect();
            let code = if of_parser { CUresult::CUDA_ERROR_NOT_SUPPORTED } else { CUresult::CUDA_ERROR_INVALID_PTX };
            return refuse(code, lines.join("\n"));
        }
    };
    let target = module.target();
    let runs = match target.variant {
        ArchitectureVariant::General => target.sm <= device.sm(),
        ArchitectureVariant::Specific => target.sm == device.sm(),
        ArchitectureVariant::Family => target.sm / 10 == device.sm() / 10 && target.sm <= device.sm(),
    };
    if !runs {
        let log = format!("ptx fatal: the module is for {target}, but the device is {device}");
        return refuse(CUresult::CUDA_ERROR_INVALID_PTX, log);
    }
    Ok(module)
}

/// The latest target for which the parser supports all instructions.
const LATEST_COMPLETE_TARGET: u16 = 61;

/// Returns whether a mistake may be a feature that the parser lacks. The parser supports only some
/// instructions of later targets.
fn is_missing(mistake: &ParseMistake, is_later: bool) -> bool {
    match mistake {
        ParseMistake::Unsupported { .. } => true,
        ParseMistake::Unknown { what: "a known instruction" | "a known modifier", .. } => is_later,
        ParseMistake::Illegal { reason: Reason::Modifiers { .. } | Reason::Operand { .. }, .. } => is_later,
        _ => false,
    }
}

/// Parses the `.target` directive, wherever it occurs.
fn target(text: &str) -> Option<u16> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    let digits = rest.trim_start().strip_prefix("sm_")?;
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..length].parse().ok()
}

/// Parses the `.version` directive, wherever it occurs.
fn version(text: &str) -> Option<Version> {
    let rest = text.lines().find_map(|line| line.trim_start().strip_prefix(".version"))?;
    let (major, minor) = rest.split_whitespace().next()?.split_once('.')?;
    Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str, device: Target) -> (CUresult, String) {
        let (error, log) = read(text, device).unwrap_err();
        (error.code, log)
    }

    #[test]
    fn load_errors_state_the_cause() {
        let empty = ".version 6.0\n.target sm_61\n.address_size 64\n";
        assert!(read(empty, Target::SM_61).is_ok());
        assert!(read(empty, Target::SM_90).is_ok());
        let (code, log) = refusal(&empty.replace("sm_61", "sm_90").replace("6.0", "8.0"), Target::SM_61);
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        assert!(log.contains("for sm_90, but the device is sm_61"), "{log}");
        let (code, log) = refusal(&empty.replace("6.0", "10.0"), Target::SM_61);
        assert_eq!(code, CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
        assert!(log.contains("10.0"), "{log}");
        let (code, log) = refusal(&format!("{empty}.visible .entry k() {{\n  add.f33 %r, 1;\n}}"), Target::SM_61);
        assert_eq!(code, CUresult::CUDA_ERROR_INVALID_PTX);
        assert!(log.contains("line 5") && log.contains("f33"), "{log}");
        assert_eq!(refusal("", Target::SM_61).0, CUresult::CUDA_ERROR_INVALID_PTX);
        // Features that the parser lacks are reported as not supported, rather than invalid.
        let entry = |line: &str| format!("{empty}.visible .entry k() {{\n{line};\n}}");
        let later = |line: &str| entry(line).replace("6.0", "8.6").replace("sm_61", "sm_90");
        for text in
            [entry("mma.sync.aligned x"), later("ld.global.L1::no_allocate.u32 x, y"), later("add.bf16 1, 1, 1")]
        {
            assert_eq!(refusal(&text, Target::SM_90).0, CUresult::CUDA_ERROR_NOT_SUPPORTED, "{text}");
        }
        assert!(read(&empty.replace("6.0", "9.0"), Target::SM_61).is_ok());
    }

    #[test]
    fn machine_code_is_recognized_by_its_first_bytes() {
        assert!(is_binary(b"\x7fELF\x02\x01") && is_binary(&[0x50, 0xED, 0x55, 0xBA, 1]));
        assert!(!is_binary(b".version 6.0") && !is_binary(b""));
    }
}
