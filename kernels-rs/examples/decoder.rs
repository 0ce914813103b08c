//! A layer of a language model: a prompt, followed by one token at a time through one graph. The
//! example runs on a GPU if there is one, otherwise on the CPU.
//!
//! ```text
//! cargo run --release -p kernels-rs --example decoder -- [--device cpu|cuda] [PROMPT [STEPS]]
//! ```
//!
//! The layer has the extents of the text model of Qwen3-VL-2B and random weights, stored as `f16`.
//! The CPU runs the kernels under the oracle, in some seconds per token. The last line is the same
//! on both, up to the rounding of `f16` and of the attention's exponentials.

use kernel_dsl::half::f16;
use kernels_rs::attention::Scratch;
use kernels_rs::blocks::cache::{Cache, Tokens};
use kernels_rs::blocks::{DecoderLayer, DecoderShape, DecoderWeights};
use kernels_rs::rotary::Rotary;
use runtime::testing::Random;
use runtime::{Device, DeviceBuffer, Error};
use std::sync::Arc;
use std::time::Instant;

/// Runs the layer on the device of the command line.
pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).peekable();
    let device = match arguments.next_if(|argument| argument == "--device").and_then(|_| arguments.next()).as_deref() {
        Some("cpu") => Device::cpu(),
        Some("cuda") => Device::cuda(0)?,
        Some(other) => return Err(format!("there is no device `{other}`: cpu or cuda").into()),
        None => Device::best()?,
    };
    let mut number = |usual: usize| arguments.next().map_or(Ok(usual), |text| text.parse());
    let (prompt, steps) = if device.is_cpu() { (number(3)?, number(2)?) } else { (number(512)?, number(128)?) };
    run(&device, DecoderShape::QWEN3_VL_2B, prompt, steps)
}

/// Runs a layer over a prompt, and then over `steps` more tokens, one at a time.
pub fn run(
    device: &Device,
    shape: DecoderShape,
    prompt: usize,
    steps: usize,
) -> Result<(), Box<dyn std::error::Error>> {
    println!("{device}: a prompt of {prompt} tokens, and {steps} more");

    let DecoderShape { width, groups, heads, head, .. } = shape;
    let room = prompt + steps;
    let mut random = Random::new(1);
    let layer = DecoderLayer::new(shape, weights(device, shape, &mut random)?);
    let frequencies = device.upload(&Rotary::frequencies(5e6, head))?;
    let axes = device.zeros::<u32>(head / 2)?;
    let stream = device.stream()?;

    // Runs the prompt, and stores its keys and values in the cache.
    let mut cache = [(); 2].map(|()| device.zeros::<f16>(groups * room * head));
    let [Ok(keys), Ok(values)] = &mut cache else { return Err("the cache does not fit".into()) };
    let of_cache = [1, groups, room, head];
    let places: Vec<u32> = (0..prompt as u32).collect();
    let places = device.upload(&places)?;
    let tokens = Tokens {
        positions: places.view([1, prompt])?,
        axes: axes.view([head / 2])?,
        frequencies: frequencies.view([head / 2])?,
        slots: places.view([prompt])?,
    };
    let inputs: Vec<f32> = random.values(prompt * width);
    let mut x = device.upload(&inputs)?;
    let start = Instant::now();
    let mut views = Cache { keys: keys.view_mut(of_cache)?, values: values.view_mut(of_cache)? };
    layer.prefill(&stream, &mut x.view_mut([prompt, width])?, &tokens, &mut views, 0, 0)?;
    stream.wait()?;
    println!("prompt: {:.3?} a token", start.elapsed() / prompt.max(1) as u32);

    // Records one step, whose input is the output of the previous step.
    let recording = device.record();
    let last = x.download()?.split_off((prompt.max(1) - 1) * width);
    let x = recording.own(device.upload(&last)?)?;
    let [position, slot, length] = [(); 3].map(|()| device.zeros::<u32>(1).and_then(|buffer| recording.own(buffer)));
    let (position, slot, length) = (position?, slot?, length?);
    let (axes, frequencies) = (recording.borrow(&axes)?, recording.borrow(&frequencies)?);
    let (keys, values) = (recording.lend(keys)?, recording.lend(values)?);
    let mut scratch = Scratch::new(&recording, [1, heads, head], groups, room)?;
    let tokens = Tokens {
        positions: position.view([1, 1])?,
        axes: axes.view([head / 2])?,
        frequencies: frequencies.view([head / 2])?,
        slots: slot.view([1])?,
    };
    let mut views = Cache { keys: keys.view_mut(of_cache)?, values: values.view_mut(of_cache)? };
    layer.decode(&recording, &mut x.view_mut([1, width])?, &tokens, &length.view([1])?, &mut views, &mut scratch)?;
    let mut graph = recording.finish()?;
    println!("a step is {} launches in one graph", graph.len());

    let start = Instant::now();
    for step in 0..steps {
        let place = (prompt + step) as u32;
        for (slot, number) in [(position, place), (slot, place), (length, place + 1)] {
            graph.buffer_mut(slot)?.copy_from(&[number])?;
        }
        graph.replay(&stream)?;
    }
    stream.wait()?;
    println!("steps: {:.3?} a token", start.elapsed() / steps.max(1) as u32);
    let out = graph.buffer(x)?.download()?;
    let size = out.iter().map(|x| x * x).sum::<f32>().sqrt();
    println!("the last token: {:.2?} …, of length {size:.1}", &out[..4.min(out.len())]);
    Ok(())
}

/// Returns random weights, of a magnitude that keeps tokens from growing.
fn weights(device: &Device, shape: DecoderShape, random: &mut Random) -> Result<DecoderWeights<f16>, Error> {
    let DecoderShape { width, heads, head, inner, .. } = shape;
    let mut draw = |n: usize, size: f32| -> Result<Arc<DeviceBuffer<f16>>, Error> {
        let some: Vec<f16> = (0..n.min(1 << 20)).map(|_| f16::from_f32(size * random.unit() as f32)).collect();
        let all: Vec<f16> = some.iter().copied().cycle().take(n).collect();
        device.upload(&all).map(Arc::new)
    };
    let linear = 1.0 / (width as f32).sqrt();
    Ok(DecoderWeights {
        norm: draw(width, 1.0)?,
        projection: draw(shape.projection_rows() * width, linear)?,
        head_norms: [draw(head, 1.0)?, draw(head, 1.0)?],
        output: draw(width * heads * head, linear)?,
        network_norm: draw(width, 1.0)?,
        gate_and_up: draw(2 * inner * width, linear)?,
        down: draw(width * inner, linear)?,
    })
}
