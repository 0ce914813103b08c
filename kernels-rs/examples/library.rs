//! The kernel library: a small classifier, from features to classes.
//!
//! ```text
//! cargo run --release -p kernels-rs --example library
//! ```
//!
//! Each call takes a device, a stream or a recording, and views of buffers with their extents. The
//! calls select the kernel for the shape.

use kernels_rs::gemm::Gemm;
use kernels_rs::rowwise::Softmax;
use kernels_rs::sampling::Sample;
use runtime::Device;
use runtime::testing::Random;
use std::error::Error;

/// Computes softmax(x · wᵀ) and the likeliest class of each row.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [rows, features, classes] = [4, 64, 10];
    let mut random = Random::new(1);
    let (x, w): (Vec<f32>, Vec<f32>) = (random.values(rows * features), random.values(classes * features));

    let device = Device::best()?;
    let stream = device.stream()?;
    let (on_x, on_w) = (stream.upload(&x)?, stream.upload(&w)?);
    let mut logits = device.zeros::<f32>(rows * classes)?;
    let mut shares = device.zeros::<f32>(rows * classes)?;
    let mut likeliest = device.zeros::<u32>(rows)?;
    // Products take batches of matrices.
    let product = Gemm::new().transpose_b();
    let (a, b) = (on_x.view([1, rows, features])?, on_w.view([1, classes, features])?);
    product.run(&stream, &a, &b, &mut logits.view_mut([1, rows, classes])?)?;
    Softmax::new().run(&stream, &logits.view([rows, classes])?, &mut shares.view_mut([rows, classes])?)?;
    // A temperature of 0 takes the likeliest class.
    let sample = Sample::new(1).temperature(0.0);
    sample.run(&stream, &logits.view([rows, classes])?, &mut likeliest.view_mut([rows])?)?;

    // A download waits for what writes the buffer.
    let (shares, likeliest) = (shares.download()?, likeliest.download()?);
    for (row, class) in likeliest.iter().enumerate() {
        let dot = |class: usize| (0..features).map(|i| x[row * features + i] * w[class * features + i]).sum::<f32>();
        let largest = (0..classes).max_by(|a, b| dot(*a).total_cmp(&dot(*b)));
        assert_eq!(largest, Some(*class as usize));
        let share = shares[row * classes + *class as usize];
        println!("row {row}: class {class} with {:.1} %", 100.0 * share);
    }
    Ok(())
}
