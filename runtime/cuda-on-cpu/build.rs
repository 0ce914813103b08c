//! Linker arguments on Linux: the library has the driver's name, and is never unloaded.

fn main() {
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libcuda.so.1");
        // A program may close the library while its worker thread still runs. NVIDIA's driver also
        // stays loaded.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
