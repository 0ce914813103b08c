//! `math::` on the device: the same bits as on the host, and what it costs beside NVIDIA's library.

#[path = "../every_target/mod.rs"]
mod every_target;
mod kernels;

#[test]
fn dump() {
    for (n, a, _) in kernels::SINGLE { std::fs::write(format!("/tmp/mp/{n}.ptx"), a.instances[0].ptx).unwrap(); }
    use kernel_dsl::Kernel;
    std::fs::write("/tmp/mp/pow.ptx", kernels::several::pow::ARTIFACT.instances[0].ptx).unwrap();
    std::fs::write("/tmp/mp/sin_cos.ptx", kernels::several::sin_cos::ARTIFACT.instances[0].ptx).unwrap();
}
