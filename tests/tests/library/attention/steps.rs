//! Tests of decoding steps over caches, of one token and of several.

use super::{AttentionShape, Operands, TOLERANCE, compare};
use kernel_dsl::half::{bf16, f16};
use kernels_rs::attention::{Decode, KvCache, Scratch};
use runtime::Device;
use runtime::testing::Random;

/// Checks decoding steps, which are attention of one query, over caches: contiguous, paged, in
/// `f16` and in bytes.
fn steps(device: &Device) {
    let mut random = Random::new(6);
    let (batch, room, page) = (2, 48, 16);
    for (heads, groups, width) in [(2, 2, 64), (3, 1, 24), (4, 2, 200), (8, 1, 128)] {
        let shape = AttentionShape { batch, heads, groups, queries: 1, keys: room, width, values: width };
        let x = Operands::new(device, &mut random, shape);
        let lengths = [37u32, 3];
        let scale = 1.0 / (width as f64).sqrt();
        let answer = x.answer(|[b, _, _, j], x| if j < lengths[b] as usize { x * scale } else { f64::NEG_INFINITY }).o;
        let counts = device.upload(&lengths).unwrap();
        let counts = counts.view([batch]).unwrap();
        let of_q = [batch, heads, width];
        let mut scratch = Scratch::with_splits(device, of_q, 3).unwrap();
        let q = x.on_device[0].view(of_q).unwrap();
        let [_, k, v] = &x.on_device;
        let cache = [batch, groups, room, width];
        // The second run checks that the first has restored the counters.
        for _ in 0..2 {
            let mut o = device.upload(&vec![f32::NAN; answer.len()]).unwrap();
            let kv = KvCache::new(k.view(cache).unwrap(), v.view(cache).unwrap());
            Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            compare("a cache", &o.download().unwrap(), &answer, TOLERANCE);
        }

        let pages = room / page;
        let table: Vec<u32> = (0..(batch * pages) as u32).map(|i| i * 5 % (batch * pages) as u32).collect();
        let in_pages = |of: &[f32]| {
            let mut out = vec![0.0; of.len()];
            for (i, x) in of.iter().enumerate() {
                let (d, j, g, b) = (i % width, i / width % room, i / width / room % groups, i / width / room / groups);
                let plane = table[b * pages + j / page] as usize;
                out[((plane * groups + g) * page + j % page) * width + d] = *x;
            }
            device.upload(&out).unwrap()
        };
        let (pk, pv, table_there) = (in_pages(&x.k), in_pages(&x.v), device.upload(&table).unwrap());
        let paged = [batch * pages, groups, page, width];
        let kv = KvCache::new(pk.view(paged).unwrap(), pv.view(paged).unwrap());
        let mut o = device.upload(&vec![f32::NAN; answer.len()]).unwrap();
        let there = table_there.view([batch, pages]).unwrap();
        Decode::new().run(device, &q, kv.paged(there), &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        compare("pages", &o.download().unwrap(), &answer, TOLERANCE);

        // `f16` keeps 11 bits of keys and values below 4, and logits are sums of them.
        let halves = |of: &[f32]| device.upload(&of.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()).unwrap();
        let (hk, hv) = (halves(&x.k), halves(&x.v));
        let kv = KvCache::new(hk.view(cache).unwrap(), hv.view(cache).unwrap());
        Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        compare("halves", &o.download().unwrap(), &answer, 2e-2);
        // An output of 16 bits has the same numbers, rounded.
        let mut narrow = device.upload(&vec![bf16::NAN; answer.len()]).unwrap();
        Decode::new().run(device, &q, kv, &counts, &mut narrow.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        let rounded: Vec<bf16> = o.download().unwrap().iter().map(|x| bf16::from_f32(*x)).collect();
        assert_eq!(narrow.download().unwrap(), rounded, "an output of 16 bits");

        if width % 16 == 0 {
            // The error of a byte is 1/254 of the largest element of its row.
            let bytes = |of: &[f32]| {
                let tops: Vec<f32> =
                    of.chunks(width).map(|r| r.iter().fold(0.0f32, |m, x| m.max(x.abs())) / 127.0).collect();
                let bytes: Vec<i8> = of.iter().enumerate().map(|(i, x)| (x / tops[i / width]).round() as i8).collect();
                (device.upload(&bytes).unwrap(), device.upload(&tops).unwrap())
            };
            let ((bk, sk), (bv, sv)) = (bytes(&x.k), bytes(&x.v));
            let kv = KvCache::new(bk.view(cache).unwrap(), bv.view(cache).unwrap());
            let kv = kv.scaled([&sk, &sv].map(|scales| scales.view([batch, groups, room]).unwrap()));
            Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            let whole = o.download().unwrap();
            compare("bytes", &whole, &answer, 0.1);
            // A page for each sequence, in the other order: the same numbers.
            let swapped = |bytes: &[i8], scales: &[f32]| {
                let (bytes, scales) = (
                    [&bytes[bytes.len() / 2..], &bytes[..bytes.len() / 2]].concat(),
                    [&scales[scales.len() / 2..], &scales[..scales.len() / 2]].concat(),
                );
                (device.upload(&bytes).unwrap(), device.upload(&scales).unwrap())
            };
            let (pk, pk_scales) = swapped(&bk.download().unwrap(), &sk.download().unwrap());
            let (pv, pv_scales) = swapped(&bv.download().unwrap(), &sv.download().unwrap());
            let table = device.upload(&[1u32, 0]).unwrap();
            let kv = KvCache::new(pk.view(cache).unwrap(), pv.view(cache).unwrap())
                .scaled([&pk_scales, &pv_scales].map(|scales| scales.view([batch, groups, room]).unwrap()))
                .paged(table.view([batch, 1]).unwrap());
            Decode::new().run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            assert_eq!(o.download().unwrap(), whole, "bytes in pages");
        }
    }
}

#[test]
fn cpu_steps_agree_with_the_reference() {
    steps(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_steps_agree_with_the_reference() {
    steps(&Device::cuda(0).unwrap());
}

/// Checks steps of several tokens: every number of warps that share keys, all kinds of caches, and
/// sequences with fewer keys than tokens.
fn several_tokens(device: &Device) {
    let mut random = Random::new(8);
    let (batch, room, page) = (2, 80, 16);
    for (heads, groups, width, tokens) in
        [(2, 1, 128, 4), (4, 2, 64, 2), (1, 1, 24, 16), (3, 1, 200, 5), (8, 1, 32, 16)]
    {
        let what = format!("{tokens} tokens of {heads} and {groups} heads of {width}");
        let shape = AttentionShape { batch, heads, groups, queries: tokens, keys: room, width, values: width };
        let x = Operands::new(device, &mut random, shape);
        let lengths = [77u32, 3];
        let scale = 1.0 / (width as f64).sqrt();
        let seen = |b: usize, t: usize| (lengths[b] as usize + t + 1).saturating_sub(tokens);
        let masked = |[b, _, t, j]: [usize; 4], x: f64| if j < seen(b, t) { x * scale } else { f64::NEG_INFINITY };
        // Operands have heads before queries, and a step has tokens before heads.
        let place = |i: usize| {
            let (d, t, h, b) = (i % width, i / width % tokens, i / width / tokens % heads, i / width / tokens / heads);
            ((b * tokens + t) * heads + h) * width + d
        };
        let (mut answer, mut of_tokens) = (vec![0.0; x.q.len()], vec![0.0f32; x.q.len()]);
        for (i, (o, q)) in x.answer(masked).o.into_iter().zip(&x.q).enumerate() {
            (answer[place(i)], of_tokens[place(i)]) = (o, *q);
        }
        let of_q = [batch * tokens, heads, width];
        let (q, counts) = (device.upload(&of_tokens).unwrap(), device.upload(&lengths).unwrap());
        let (q, counts) = (q.view(of_q).unwrap(), counts.view([batch]).unwrap());
        let mut o = device.upload(&vec![f32::NAN; answer.len()]).unwrap();
        let step = Decode::new().tokens(tokens);
        let [_, k, v] = &x.on_device;
        let cache = [batch, groups, room, width];
        let kv = KvCache::new(k.view(cache).unwrap(), v.view(cache).unwrap());
        let scratches =
            [Scratch::with_splits(device, of_q, 3), Scratch::for_tokens(device, of_q, tokens, groups, room)];
        for mut scratch in scratches.map(Result::unwrap) {
            // The second run checks that the first has restored the counters.
            for _ in 0..2 {
                step.run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
                compare(&what, &o.download().unwrap(), &answer, TOLERANCE);
            }
        }
        let mut scratch = Scratch::with_splits(device, of_q, 2).unwrap();
        // Pages of one key head are the rows of the cache.
        if groups == 1 {
            let table: Vec<u32> = (0..(batch * room / page) as u32).collect();
            let table = device.upload(&table).unwrap();
            let pages = [batch * room / page, 1, page, width];
            let kv = KvCache::new(k.view(pages).unwrap(), v.view(pages).unwrap());
            let kv = kv.paged(table.view([batch, room / page]).unwrap());
            step.run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
            compare(&format!("pages, {what}"), &o.download().unwrap(), &answer, TOLERANCE);
        }
        let halves = |of: &[f32]| device.upload(&of.iter().map(|x| f16::from_f32(*x)).collect::<Vec<_>>()).unwrap();
        let (hk, hv) = (halves(&x.k), halves(&x.v));
        let kv = KvCache::new(hk.view(cache).unwrap(), hv.view(cache).unwrap());
        step.run(device, &q, kv, &counts, &mut o.view_mut(of_q).unwrap(), &mut scratch).unwrap();
        compare(&format!("halves, {what}"), &o.download().unwrap(), &answer, 2e-2);
    }
}

#[test]
fn cpu_several_tokens_agree_with_the_reference() {
    several_tokens(&Device::cpu());
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn gpu_several_tokens_agree_with_the_reference() {
    several_tokens(&Device::cuda(0).unwrap());
}

/// Rejects a cache of a different number of sequences, and one without pages. Fewer pages than
/// sequences and no sequences are legal.
#[test]
fn caches_of_other_sequences_are_rejected() {
    let device = Device::cpu();
    let (of_q, of_cache) = ([4, 1, 8], [4, 1, 4, 8]);
    let (q, x) = (device.zeros::<f32>(4 * 8).unwrap(), device.zeros::<f32>(4 * 4 * 8).unwrap());
    let (lengths, table) = (device.upload(&[4u32; 4]).unwrap(), device.upload(&[0u32, 1, 1, 0]).unwrap());
    let mut answers = device.zeros::<f32>(4 * 8).unwrap();
    let (q, cache, lengths) = (q.view(of_q).unwrap(), x.view(of_cache).unwrap(), lengths.view([4]).unwrap());
    let (table, mut o) = (table.view([4, 1]).unwrap(), answers.view_mut(of_q).unwrap());
    let mut scratch = Scratch::with_splits(&device, of_q, 2).unwrap();

    let mut in_one_piece = |planes: usize| {
        let kv = cache.slice(0..planes).unwrap();
        Decode::new().run(&device, &q, KvCache::new(kv, kv), &lengths, &mut o, &mut scratch)
    };
    in_one_piece(4).unwrap();
    for planes in [0, 2, 3] {
        let said = in_one_piece(planes).unwrap_err().to_string();
        let wanted =
            format!("the cache has {planes} planes, and there are 4 queries: it needs a plane for each sequence");
        assert!(said.contains(&wanted), "{said}");
    }

    let mut in_pages = |pages: usize, rows: usize| {
        let (kv, table) = (cache.slice(0..pages).unwrap(), table.slice(0..rows).unwrap());
        Decode::new().run(&device, &q, KvCache::new(kv, kv).paged(table), &lengths, &mut o, &mut scratch)
    };
    in_pages(4, 4).unwrap();
    in_pages(2, 4).unwrap();
    for rows in [0, 2, 3] {
        let said = in_pages(4, rows).unwrap_err().to_string();
        let wanted = format!("the table has {rows} rows, and there are 4 queries: it needs a row for each sequence");
        assert!(said.contains(&wanted), "{said}");
    }
    let said = in_pages(0, 4).unwrap_err().to_string();
    assert!(said.contains("the cache has no page, and there are 4 queries: it needs at least one"), "{said}");

    let (q, lengths) = (q.slice(0..0).unwrap(), lengths.slice(0..0).unwrap());
    let mut nothing = o.slice(0..0).unwrap();
    let cache = KvCache::new(cache, cache);
    Decode::new().run(&device, &q, cache, &lengths, &mut nothing, &mut scratch).unwrap();
    Decode::new().run(&device, &q, cache.paged(table), &lengths, &mut nothing, &mut scratch).unwrap();
}
