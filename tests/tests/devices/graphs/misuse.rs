//! Tests of rejected operations on graphs. The graph remains usable.

use super::{N, beyond, count, mix, mixed, transpose};
use runtime::{Device, Error};

pub fn all(device: &Device, times: u32) {
    let recording = device.record();
    let plain = device.zeros::<u32>(N).unwrap();
    let (x, y) =
        (recording.own(device.upload(&count(1)).unwrap()).unwrap(), recording.own(device.zeros(N).unwrap()).unwrap());
    let short = recording.own(device.zeros::<u32>(5).unwrap()).unwrap();
    let said = |result: Result<(), Error>| result.unwrap_err().to_string();

    // During the recording.
    let refused = said(mix::launch(&recording, 1, &plain, y));
    assert!(refused.contains("argument `x`: its memory is not lent to this recording"), "{refused}");
    assert!(said(mix::launch(&recording, 1, short, y)).contains("requires `x.len() == y.len()`"));
    assert!(said(mix::launch(&recording, 1, y, y)).contains("overlap"));
    let other = device.record();
    let foreign = other.own(device.zeros::<u32>(N).unwrap()).unwrap();
    assert!(said(mix::launch(&recording, 1, x, foreign)).contains("not lent to this recording"));
    assert!(x.view([3, 4]).is_err() && x.range(5..N + 1).is_err() && x.range_mut(7..N + 2).is_err());
    assert!(
        said(transpose::launch(&recording, x.view([20, 50]).unwrap(), y.view_mut([20, 50]).unwrap()))
            .contains("requires")
    );
    // Other launches do not accept slots.
    let refused = said(mix::launch(device, 1, x, y));
    assert!(
        refused.contains("its memory belongs to another device") || refused.contains("lent to a recording"),
        "{refused}"
    );
    assert!(mix::launch(&device.stream().unwrap(), 1, x, y).is_err());
    let borrowed = recording.borrow(&plain).unwrap();
    let node = recording.add(mix::call(times, x, y)).unwrap();
    let of_other = other.add(mix::call(1, foreign.range(0..5).unwrap(), foreign.range_mut(5..10).unwrap())).unwrap();
    let mut graph = recording.finish().unwrap();

    // After the recording.
    assert!(matches!(graph.buffer(foreign), Err(Error::OtherGraph { .. })));
    assert!(matches!(graph.buffer_mut(foreign), Err(Error::OtherGraph { .. })));
    assert!(said(graph.update(of_other, mix::call(1, x, y))).contains("the node belongs to another recording"));
    assert!(said(graph.update(node, mix::call(1, x, foreign))).contains("not lent to this recording"));
    assert!(said(graph.update(node, mix::call(1, short, y))).contains("requires"));
    let refused = said(graph.update(node, beyond::call(0, x, y)));
    assert!(refused.contains("cannot replace a checked launch of mix by a checked launch of beyond"), "{refused}");
    // SAFETY: the update is rejected, so that nothing is launched.
    let refused = said(unsafe { graph.update_unchecked(node, mix::call(1, x, y)) });
    assert!(refused.contains("an unchecked launch of mix"), "{refused}");

    let stream = device.stream().unwrap();
    let other_device = match device.is_cpu() {
        true => None,
        false => Some(Device::cpu()),
    };
    if let Some(other_device) = &other_device {
        let refused = said(graph.replay(&other_device.stream().unwrap()));
        assert!(refused.contains("the graph belongs to"), "{refused}");
        let kept = std::mem::replace(graph.buffer_mut(y).unwrap(), other_device.zeros(N).unwrap());
        assert!(said(graph.replay(&stream)).contains("a buffer of the graph belongs to cpu"));
        *graph.buffer_mut(y).unwrap() = kept;
        assert!(device.record().own(other_device.zeros::<u32>(1).unwrap()).is_err());
    }
    let kept = std::mem::replace(graph.buffer_mut(y).unwrap(), device.zeros(N + 1).unwrap());
    let refused = said(graph.replay(&stream));
    assert!(
        refused.contains("slot 1 was recorded with a buffer of 4000 bytes, and holds one of 4004 bytes"),
        "{refused}"
    );
    *graph.buffer_mut(y).unwrap() = kept;

    // The graph still runs its recorded launches.
    graph.replay(&stream).unwrap();
    stream.wait().unwrap();
    let mut expected = vec![0; N];
    mixed(times, &count(1), &mut expected);
    assert_eq!(graph.buffer(y).unwrap().download().unwrap(), expected);
    assert_eq!(graph.buffer(borrowed).unwrap().len(), N);
}
