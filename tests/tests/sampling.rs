//! Tokens drawn as a program draws them, on the CPU and on a GPU: as often as their probabilities say, and the same every time.

use kernels_rs::sampling::Sample;
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer};

const ROWS: usize = 400;
const COLS: usize = 12;

/// Logits of as many rows, all alike.
fn logits(device: &Device) -> (Vec<f64>, DeviceBuffer<f32>) {
    let row: Vec<f32> = Random::new(4).values(COLS);
    let all = row.repeat(ROWS);
    (row.into_iter().map(f64::from).collect(), device.upload(&all).unwrap())
}

fn draw(device: &Device, sample: Sample, logits: &DeviceBuffer<f32>, rows: usize) -> Vec<u32> {
    let mut tokens = device.zeros::<u32>(rows).unwrap();
    let of_rows = logits.view_strided([rows, COLS], [COLS, 1]).unwrap();
    sample.run(device, &of_rows, &mut tokens.view_mut([rows]).unwrap()).unwrap();
    tokens.download().unwrap()
}

/// Pearson's statistic of the tokens against probabilities: beyond 40 with 11 degrees of freedom once in 28,000 such draws, and these are always
/// the same.
fn fit(tokens: &[u32], p: &[f64], what: &str) {
    let total: f64 = p.iter().sum();
    let mut statistic = 0.0;
    for (token, p) in p.iter().enumerate() {
        let (seen, expected) =
            (tokens.iter().filter(|t| **t as usize == token).count() as f64, p / total * tokens.len() as f64);
        assert!(expected > 0.0 || seen == 0.0, "{what}: token {token} is drawn");
        statistic += if expected > 0.0 { (seen - expected).powi(2) / expected } else { 0.0 };
    }
    assert!(statistic < 40.0, "{what}: {statistic}");
}

/// `few` draws where a block of 1024 threads makes each.
fn all(device: &Device, temperature: f32, few: usize) {
    let (row, logits) = logits(device);
    let p: Vec<f64> = row.iter().map(|x| (x / f64::from(temperature)).exp()).collect();
    let mut order: Vec<usize> = (0..COLS).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let of_likeliest =
        |n: usize| -> Vec<f64> { (0..COLS).map(|i| if order[..n].contains(&i) { p[i] } else { 0.0 }).collect() };
    let sample = Sample::new(11).temperature(temperature);
    let tokens = draw(device, sample, &logits, ROWS);
    fit(&tokens, &p, "all");
    assert_eq!(tokens, draw(device, sample, &logits, ROWS), "the same again");
    assert_ne!(tokens, draw(device, sample.offset(1), &logits, ROWS), "another draw");
    fit(&draw(device, sample.top_k(5), &logits, few), &of_likeliest(5), "top 5");
    // The likeliest before which less than 0.6 lies.
    let total: f64 = p.iter().sum();
    let kept = (0..COLS).take_while(|n| order[..*n].iter().map(|i| p[*i]).sum::<f64>() < 0.6 * total).count();
    fit(&draw(device, sample.top_p(0.6), &logits, few), &of_likeliest(kept), "up to 0.6");
    assert_eq!(draw(device, sample.top_k(1), &logits, 3), vec![order[0] as u32; 3]);
}

#[test]
fn cpu_tokens_are_drawn_as_often_as_they_are_likely() {
    all(&Device::cpu(), 0.5, 12);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_tokens_are_drawn_as_often_as_they_are_likely() {
    for temperature in [1.0, 0.5, 4.0] {
        all(&Device::cuda(0).unwrap(), temperature, ROWS);
    }
}

/// Top-k and top-p of more tokens than are sorted: no other is drawn, each that is kept is, and what is kept is what a sort says.
fn of_many(device: &Device, few: u64) {
    let cols = 2000;
    // No two alike.
    let row: Vec<f32> = (0..cols).map(|i| -((i * 7 % cols) as f32) / 1000.0).collect();
    let logits = device.upload(&row).unwrap();
    let logits = logits.view([1, cols]).unwrap();
    let mut places: Vec<usize> = (0..cols).collect();
    places.sort_by(|a, b| row[*b].total_cmp(&row[*a]));
    let p: Vec<f64> = places.iter().map(|i| f64::from(row[*i]).exp()).collect();
    let total: f64 = p.iter().sum();
    let until = |all: f64, cut: f64| (0..cols).take_while(|n| p[..*n].iter().sum::<f64>() < cut * all).count();
    let of_top: f64 = p[..1500].iter().sum();
    for (sample, kept) in [
        (Sample::new(3).top_k(1500), 1500),
        (Sample::new(4).top_p(0.75), until(total, 0.75)),
        (Sample::new(5).top_p(1e-9), 1),
        (Sample::new(6).top_k(1500).top_p(0.5), until(of_top, 0.5)),
        (Sample::new(7).top_k(4000).top_p(0.999), until(total, 0.999)),
    ] {
        let mut tokens = device.zeros::<u32>(1).unwrap();
        let mut ranks: Vec<usize> = Vec::new();
        for offset in 0..few {
            sample.offset(offset).run(device, &logits, &mut tokens.view_mut([1]).unwrap()).unwrap();
            let token = tokens.download().unwrap()[0] as usize;
            ranks.push(places.iter().position(|i| *i == token).unwrap());
        }
        assert!(ranks.iter().all(|rank| *rank < kept), "{sample:?}: {ranks:?} of {kept}");
        // Whole distributions are the kernel's subject's; here, that it is not always the same.
        assert!(kept == 1 || ranks.iter().any(|rank| *rank != ranks[0]), "{sample:?}: {ranks:?}");
    }
    let mut tokens = device.zeros::<u32>(1).unwrap();
    for p in [0.0, -0.5, f32::NAN] {
        let sample = Sample::new(0).top_p(p);
        // By each way there is to draw.
        for sample in [sample, sample.top_k(5), sample.top_k(1500), sample.temperature(0.0)] {
            let refused = sample.run(device, &logits, &mut tokens.view_mut([1]).unwrap());
            let said = refused.unwrap_err().to_string();
            assert!(said.contains(&format!("top_p is {p}, and is to be above 0")), "{said}");
        }
    }
}

#[test]
fn cpu_of_many() {
    of_many(&Device::cpu(), 3);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_of_many() {
    of_many(&Device::cuda(0).unwrap(), 2000);
}

/// The likeliest of a long row, wherever it lies, and however the row is divided.
#[test]
fn the_likeliest_of_a_vocabulary() {
    let device = Device::cpu();
    let cols = 20_001;
    for at in [0, 4095, 4096, 17_000, cols - 1] {
        let mut row = vec![-1.0f32; cols];
        row[at] = 0.5;
        let (logits, mut tokens) = (device.upload(&row).unwrap(), device.zeros::<u32>(1).unwrap());
        let mut of_tokens = tokens.view_mut([1]).unwrap();
        Sample::new(0).temperature(0.0).run(&device, &logits.view([1, cols]).unwrap(), &mut of_tokens).unwrap();
        assert_eq!(tokens.download().unwrap(), [at as u32]);
    }
}
