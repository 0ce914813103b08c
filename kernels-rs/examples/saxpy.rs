//! y ← 2·x + y on a GPU if there is one, otherwise on the CPU interpreter.

use kernels_rs::saxpy;
use runtime::Device;

fn main() -> Result<(), runtime::Error> {
    let n = 1000;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();

    let device = Device::best()?;
    let x = device.upload(&x)?;
    let mut y = device.upload(&vec![1.0f32; n])?;
    saxpy::launch(&device, 2.0, &x, &mut y)?;

    println!("y[999] = {}", y.download()?[999]);
    println!("\n{}", saxpy::PTX);
    Ok(())
}
