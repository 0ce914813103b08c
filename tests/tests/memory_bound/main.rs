//! Tests of memory-bound calls (copies, element-wise functions, reductions and others), on the CPU
//! and on a GPU, against plain Rust.

mod arrays;
mod counted;
mod moved;
mod reduced;
mod rotated;

/// Declares a test for each device.
macro_rules! on_each_device {
    ($($cpu:ident $gpu:ident $all:path;)*) => {$(
        #[test]
        fn $cpu() {
            $all(&runtime::Device::cpu());
        }

        #[test]
        #[ignore = "needs an NVIDIA GPU"]
        fn $gpu() {
            $all(&runtime::Device::cuda(0).unwrap());
        }
    )*};
}

on_each_device! {
    cpu_copies gpu_copies moved::copies;
    cpu_transposes gpu_transposes moved::transposes;
    cpu_fills gpu_fills moved::fills;
    cpu_maps gpu_maps moved::maps;
    cpu_gates gpu_gates moved::gates;
    cpu_reductions gpu_reductions reduced::reductions;
    cpu_rotations gpu_rotations rotated::rotations;
    cpu_gathers gpu_gathers counted::gathers;
    cpu_scans gpu_scans counted::scans;
    cpu_histograms gpu_histograms counted::histograms;
    cpu_specials gpu_specials reduced::specials;
    cpu_means_and_norms gpu_means_and_norms reduced::means_and_norms;
}
