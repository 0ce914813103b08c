//! Tests of graphs as bytes: a loaded graph has the results of the saved one, and damaged bytes are
//! an error.

use super::{N, beyond, count, mix, mixed, transpose};
use kernel_dsl::compiler::hir::serial::checksum;
use runtime::{AnySlot, Device, Error, Graph, Recording, SlotMut};

const HEADER: usize = 18;

type Slots = [SlotMut<u32>; 3];

fn slots(device: &Device, recording: &Recording) -> Slots {
    let buffers = [count(1), count(2), vec![0; N]];
    buffers.map(|data| recording.own(device.upload(&data).unwrap()).unwrap())
}

fn any(slots: Slots) -> [AnySlot; 3] {
    slots.map(AnySlot::from)
}

/// Records a graph with slices, views, a cast, and an unchecked launch if `bare` is set.
fn recorded(device: &Device, times: u32, bare: bool) -> (Graph<'static>, Slots) {
    let recording = device.record();
    let [x, y, z] = slots(device, &recording);
    mix::launch(&recording, times, x, y).unwrap();
    mix::launch(&recording, 2, y.range(10..20).unwrap(), z.range_mut(5..15).unwrap()).unwrap();
    transpose::launch(&recording, y.view([20, 50]).unwrap(), z.view_mut([50, 20]).unwrap()).unwrap();
    if bare {
        // SAFETY: each thread accesses only its own elements, in bounds.
        unsafe { mix::launch_unchecked(&recording, 1, z, y) }.unwrap();
    }
    (recording.finish().unwrap(), [x, y, z])
}

fn left(device: &Device, graph: &mut Graph, [_, y, z]: Slots) -> [Vec<u32>; 2] {
    let stream = device.stream().unwrap();
    graph.replay(&stream).unwrap();
    stream.wait().unwrap();
    [y, z].map(|slot| graph.buffer(slot).unwrap().download().unwrap())
}

pub fn round_trip(device: &Device, times: u32) {
    let (mut graph, of_graph) = recorded(device, times, true);
    let bytes = graph.save().unwrap();
    let expected = left(device, &mut graph, of_graph);

    let recording = device.record();
    let loaded_slots = slots(device, &recording);
    // SAFETY: the bytes are those that the graph was saved to.
    let nodes = unsafe { recording.load_unchecked(&bytes, &any(loaded_slots)) }.unwrap();
    let mut loaded = recording.finish().unwrap();
    assert_eq!((nodes.len(), loaded.len()), (4, 4));
    assert_eq!(left(device, &mut loaded, loaded_slots), expected);
    assert_eq!(loaded.save().unwrap(), bytes);
    // A loaded graph is updated like a recorded one.
    let [x, y, z] = loaded_slots;
    loaded.update(nodes[0], mix::call(1, z, y)).unwrap();
    let (mut y_host, z_host) = (loaded.buffer(y).unwrap().download().unwrap(), expected[1].clone());
    mixed(1, &z_host, &mut y_host);
    let transposed = (0..N).map(|i| y_host[i % 20 * 50 + i / 20]).collect::<Vec<_>>();
    let [_, z_left] = left(device, &mut loaded, loaded_slots);
    assert_eq!(z_left, transposed);
    assert_eq!(loaded.buffer(x).unwrap().download().unwrap(), count(1));

    // A saved graph depends on the program, not on a device.
    let cpu = Device::cpu();
    let recording = cpu.record();
    let on_cpu = slots(&cpu, &recording);
    // SAFETY: the bytes are those that the graph was saved to.
    unsafe { recording.load_unchecked(&bytes, &any(on_cpu)) }.unwrap();
    let mut on_cpu_graph = recording.finish().unwrap();
    if times < 100 {
        assert_eq!(left(&cpu, &mut on_cpu_graph, on_cpu), expected);
    }
}

fn said(device: &Device, bytes: &[u8]) -> Result<usize, String> {
    let recording = device.record();
    let slots = any(slots(device, &recording));
    recording.load(bytes, &slots).map(|nodes| nodes.len()).map_err(|why| why.to_string())
}

#[test]
fn damaged_bytes_are_an_error() {
    let device = Device::cpu();
    let bytes = recorded(&device, 3, false).0.save().unwrap();
    assert_eq!(said(&device, &bytes), Ok(3));
    let longer = [&bytes[..], &[0]].concat();
    assert!(said(&device, &longer).unwrap_err().contains("damaged"));
    for length in (0..bytes.len()).step_by(37).chain([HEADER - 1, HEADER, bytes.len() - 1]) {
        said(&device, &bytes[..length]).unwrap_err();
    }
    for at in (0..bytes.len()).step_by(13).chain(0..HEADER + 40) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        said(&device, &damaged).unwrap_err();
    }
    let mut later = bytes.clone();
    later[8] = 2;
    assert!(said(&device, &later).unwrap_err().contains("format is 2; this program reads format 1"));
}

/// Damages bytes and corrects their checksum. The bytes are rejected, or give another graph whose
/// launches are all checked.
#[test]
fn forged_bytes_do_no_harm() {
    let device = Device::cpu();
    let bytes = recorded(&device, 3, false).0.save().unwrap();
    // The launches are at the end, after text.
    let tail = bytes.len() - 200..bytes.len();
    let (mut taken, mut refused) = (0, 0);
    for (i, at) in tail.clone().chain(tail.clone()).chain(tail).enumerate() {
        let mut other = bytes.clone();
        other[at] = match i / 200 {
            0 => other[at] ^ 1 << (i % 8),
            1 => 0xff,
            _ => other[at].wrapping_add(i as u8 | 1),
        };
        let sum = checksum(&other[HEADER..]);
        other[10..HEADER].copy_from_slice(&sum.to_le_bytes());
        let recording = device.record();
        let slots = slots(&device, &recording);
        match recording.load(&other, &any(slots)) {
            Err(_) => refused += 1,
            Ok(_) => {
                taken += 1;
                // The graph can access these buffers only.
                let mut graph = recording.finish().unwrap();
                let stream = device.stream().unwrap();
                // A count changed to a thousand million would take too long.
                if i / 200 == 0 && i % 8 < 4 {
                    graph.replay(&stream).unwrap();
                }
            }
        }
    }
    assert!(taken > 0 && refused > 100, "{taken} taken, {refused} refused");
}

#[test]
fn unsuitable_buffers_are_rejected() {
    let device = Device::cpu();
    let bytes = recorded(&device, 3, true).0.save().unwrap();
    assert!(said(&device, &bytes).unwrap_err().contains("mix: it has unchecked launches"));
    let bytes = recorded(&device, 3, false).0.save().unwrap();
    let recording = device.record();
    let [x, y, z] = slots(&device, &recording);
    let told = |slots: &[AnySlot]| recording.load(&bytes, slots).unwrap_err().to_string();
    assert!(told(&[x.into()]).contains("it has 3 slots, given 1"));
    let short = recording.own(device.zeros::<u32>(5).unwrap()).unwrap();
    assert!(
        told(&[x.into(), short.into(), z.into()]).contains("slot 1 requires 4000 bytes of u32, given 20 bytes of u32")
    );
    let floats = recording.own(device.zeros::<f32>(N).unwrap()).unwrap();
    assert!(told(&[x.into(), y.into(), floats.into()]).contains("given 4000 bytes of f32"));
    let shared = device.zeros::<u32>(N).unwrap();
    let read_only = recording.borrow(&shared).unwrap();
    assert!(told(&[x.into(), y.into(), read_only.into()]).contains("cannot launch"), "what it writes is lent to read");
    assert!(told(&[x.into(), x.into(), z.into()]).contains("overlap"));
    let other = device.record();
    let foreign = other.own(device.zeros::<u32>(N).unwrap()).unwrap();
    assert!(matches!(recording.load(&bytes, &[x.into(), foreign.into(), z.into()]), Err(Error::OtherGraph { .. })));

    // A checked launch of a loaded graph reports its finding after the replay.
    let saved = device.record();
    let (a, b) =
        (saved.own(device.zeros::<u32>(32).unwrap()).unwrap(), saved.own(device.zeros::<u32>(32).unwrap()).unwrap());
    beyond::launch(&saved, 1, a, b).unwrap();
    let bytes = saved.finish().unwrap().save().unwrap();
    let recording = device.record();
    let pair = [0, 1].map(|_| recording.own(device.zeros::<u32>(32).unwrap()).unwrap());
    recording.load(&bytes, &pair.map(AnySlot::from)).unwrap();
    let stream = device.stream().unwrap();
    recording.finish().unwrap().replay(&stream).unwrap();
    assert!(matches!(stream.wait(), Err(Error::Violation(_))));
}
