//! The readers of GGUF and safetensors, with files that Python's `gguf` wrote and damaged files.

mod support;

use models::Error;
use models::file::gguf::{Gguf, MetadataValue, ValueType};
use models::file::safetensors::Safetensors;
use models::file::{FileTensor, TensorFormat};
use serde_json::json;
use support::{GgufWriter, data, json as read_json};

/// A tensor as Python's reader of GGUF describes it.
#[derive(serde::Deserialize)]
struct Expected {
    name: String,
    format: String,
    extents: Vec<u64>,
    offset: usize,
    bytes: usize,
}

/// Compares metadata and tensors with the output of Python's reader.
#[test]
fn every_type_and_format_is_read() {
    let bytes = std::fs::read(data("every.gguf")).unwrap();
    let gguf = Gguf::open(&data("every.gguf")).unwrap();
    let value = |name: &str| gguf.get(&format!("test.{name}")).unwrap();
    assert_eq!(value("uint8"), MetadataValue::U8(200));
    assert_eq!(value("int8"), MetadataValue::I8(-100));
    assert_eq!(value("uint16"), MetadataValue::U16(60000));
    assert_eq!(value("int16"), MetadataValue::I16(-30000));
    assert_eq!(value("uint32"), MetadataValue::U32(4_000_000_000));
    assert_eq!(value("int32"), MetadataValue::I32(-2_000_000_000));
    assert_eq!(value("float32"), MetadataValue::F32(1.5));
    assert_eq!(value("bool"), MetadataValue::Bool(true));
    assert_eq!(value("string").text(), Some("naïve 🦀"));
    assert_eq!(value("uint64"), MetadataValue::U64(1 << 63));
    assert_eq!(value("int64"), MetadataValue::I64(-(1 << 62)));
    assert_eq!(value("float64"), MetadataValue::F64(0.1));
    for value_type in ValueType::ALL.into_iter().filter(|value_type| *value_type != ValueType::Array) {
        let array = value(&format!("array.{}", value_type.name())).array().unwrap();
        assert_eq!(array.element, value_type);
        assert_eq!(array.iter().collect::<Vec<_>>(), [value(value_type.name()); 2]);
    }
    let expected: Vec<Expected> = read_json("every.json");
    assert_eq!(gguf.tensors().count(), expected.len());
    // The file has a tensor for each format except Q8_1, which `make.py` leaves out, and one more
    // of four dimensions.
    assert_eq!(expected.len(), TensorFormat::ALL.len());
    assert_eq!(TensorFormat::Q8_1.block_bytes(), 36);
    for Expected { name, format, extents, offset, bytes: length } in expected {
        let tensor = gguf.tensor(&name).unwrap();
        assert_eq!((tensor.format.name(), tensor.extents), (&*format, &*extents), "{name}");
        assert_eq!(tensor.bytes, &bytes[offset..offset + length], "{name}");
    }
}

/// Writes to a file after its metadata was read. Text and arrays keep their values.
#[test]
fn metadata_are_copies() {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("changed.gguf");
    let file = GgufWriter::default().text("a", "text").texts("b", &["c", "d"]);
    let bytes = file.tensor("t", &[8], 0, vec![7; 32]).finish();
    std::fs::write(&path, &bytes).unwrap();
    let gguf = Gguf::open(&path).unwrap();
    // The bytes of the file are changed in place, and 0xff never occurs in UTF-8.
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::io::Write::write_all(&mut file, &vec![0xff; bytes.len()]).unwrap();
    assert_eq!(gguf.get("a").unwrap().text(), Some("text"));
    let texts: Vec<_> = gguf.get("b").unwrap().array().unwrap().iter().map(|text| text.text()).collect();
    assert_eq!(texts, [Some("c"), Some("d")]);
    assert_eq!(gguf.tensor("t").unwrap().bytes.len(), 32);
}

/// Reads version 2, which has the layout of version 3, and rejects others.
#[test]
fn versions_2_and_3_are_read() {
    let with = |version: u32| {
        let mut bytes = std::fs::read(data("every.gguf")).unwrap();
        bytes[4..8].copy_from_slice(&version.to_le_bytes());
        Gguf::from_bytes("x.gguf", bytes).map(|gguf| gguf.version())
    };
    assert_eq!(with(2).unwrap(), 2);
    assert_eq!(with(3).unwrap(), 3);
    for (version, needed) in [(1, "version 1"), (4, "version 4"), (3 << 24, "a big-endian file")] {
        let expected =
            format!("x.gguf, version at byte 4: {needed} is not supported; supported: little-endian versions 2 and 3");
        assert_eq!(with(version).unwrap_err().to_string(), expected);
    }
}

/// Compares the error for a file with the expected message.
#[track_caller]
fn refused(bytes: Vec<u8>, expected: &str) {
    assert_eq!(Gguf::from_bytes("x.gguf", bytes).unwrap_err().to_string(), expected);
}

/// Compares whole messages: offset, field, what was expected and what was found.
#[test]
fn damaged_files_are_refused_by_name() {
    let tensor = |extents: &[u64], format, n| GgufWriter::default().tensor("t", extents, format, vec![0; n]).finish();
    refused(
        b"PK\x03\x04".to_vec(),
        "x.gguf, byte 0, magic: expected `GGUF`, found `PK\\u{3}\\u{4}`: this is not a GGUF file",
    );
    refused(vec![], "x.gguf, byte 0, magic: needs 4 bytes, and the file ends after 0 more: it is truncated or damaged");
    let mut bytes = GgufWriter::default().text("a", "text").finish();
    bytes.truncate(47);
    refused(
        bytes,
        "x.gguf, byte 45, metadata `a`, value: needs 4 bytes, and the file ends after 2 more: it is truncated or damaged",
    );
    refused(
        GgufWriter::default().raw("a", 13, &[]).finish(),
        "x.gguf, byte 33, type of metadata `a`: expected the number of a value type, 0 to 12, found 13",
    );
    refused(
        GgufWriter::default().raw("a", 7, &[2]).finish(),
        "x.gguf, byte 37, metadata `a`, value: expected 0 or 1 for a bool, found 2",
    );
    refused(
        GgufWriter::default().u32("a", 1).u32("a", 2).finish(),
        "x.gguf, byte 41, metadata entry 1: the key `a` occurs twice",
    );
    refused(
        GgufWriter::default().u32("general.alignment", 48).finish(),
        "x.gguf, byte 53, metadata `general.alignment`: expected a power of two up to 1048576, found uint32 48",
    );
    refused(
        tensor(&[2, 33], 8, 100),
        "x.gguf, byte 37, extents of tensor `t`: rows of Q8_0 are multiples of 32 elements, and these have 33",
    );
    refused(
        tensor(&[u64::MAX, 2], 0, 8),
        &format!(
            "x.gguf, byte 37, extents of tensor `t`: expected a product from 1 to 2^64 - 1, found [2, {}]",
            u64::MAX
        ),
    );
    refused(
        tensor(&[0], 0, 8),
        "x.gguf, byte 37, extents of tensor `t`: expected a product from 1 to 2^64 - 1, found [0]",
    );
    refused(tensor(&[1; 5], 0, 8), "x.gguf, byte 33, dimensions of tensor `t`: expected 1 to 4, found 5");
    refused(
        tensor(&[64], 0, 128),
        "x.gguf, byte 49, offset of tensor `t`: the tensor ends at byte 320, the file at byte 192: it is truncated",
    );
    let error = Gguf::from_bytes("x.gguf", tensor(&[64], 4, 128)).unwrap_err().to_string();
    assert!(
        error.starts_with("x.gguf, tensor `t`: format number 4 is not supported; supported: 0 F32, 1 F16, 2 Q4_0,")
    );
    let two = GgufWriter::default().tensor("a", &[8], 0, vec![0; 32]).tensor("b", &[16], 0, vec![0; 64]);
    let mut bytes = two.clone().finish();
    Gguf::from_bytes("x.gguf", bytes.clone()).unwrap();
    // Tensor b gets the offset of tensor a, and then an offset that is not aligned.
    let at = 24 + 2 * 33 - 8;
    assert_eq!(bytes[at], 32);
    bytes[at] = 0;
    refused(bytes.clone(), "x.gguf, byte 82, offset of tensor `b`: the tensor shares bytes with tensor `a`");
    bytes[at] = 4;
    refused(bytes, "x.gguf, byte 82, offset of tensor `b`: expected a multiple of the alignment 32, found 4");
    refused(two.clone().tensor("a", &[8], 0, vec![0; 32]).finish(), "x.gguf, tensor `a`: the name occurs twice");
}

/// Rejects counts that exceed a small file, before memory is allocated for them.
#[test]
fn hostile_counts_are_refused_at_once() {
    let mut header = b"GGUF\x03\0\0\0".to_vec();
    header.extend(u64::MAX.to_le_bytes());
    header.extend(0u64.to_le_bytes());
    refused(header, &format!("x.gguf, byte 8, count of tensors: expected at most 262144, found {}", u64::MAX));
    for element in 0..13u32 {
        // The array claims 2^62 elements, but the file ends after the count.
        let array = [&element.to_le_bytes()[..], &(1u64 << 62).to_le_bytes()].concat();
        let error = Gguf::from_bytes("x.gguf", GgufWriter::default().raw("a", 9, &array).finish()).unwrap_err();
        assert!(matches!(error, Error::Damaged { offset: 41..=64, .. }), "{error}");
    }
    // Each of 100,000 arrays contains the next one, and takes 12 bytes.
    let deep: Vec<u8> = (0..100_000).flat_map(|_| [&9u32.to_le_bytes()[..], &1u64.to_le_bytes()].concat()).collect();
    refused(
        GgufWriter::default().raw("a", 9, &deep).finish(),
        "x.gguf, byte 137, metadata `a`, array: arrays are nested more than 8 deep",
    );
}

/// Opens a split model by the path of each part, and rejects wrong names and missing parts.
#[test]
fn split_models_are_opened_by_any_part() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("split");
    std::fs::create_dir_all(&folder).unwrap();
    let path = |i: u32| folder.join(format!("m-{:05}-of-00003.gguf", i + 1));
    for i in 0..3u32 {
        let part = GgufWriter::default().u32("split.no", i).u32("split.count", 3).u32("split.tensors.count", 3);
        let part = if i == 0 { part.text("general.name", "m") } else { part };
        std::fs::write(path(i), part.tensor(&format!("t{i}"), &[8], 0, vec![i as u8; 32]).finish()).unwrap();
    }
    for i in 0..3 {
        let gguf = Gguf::open(&path(i)).unwrap();
        assert_eq!((gguf.parts(), gguf.get("general.name").unwrap().text()), (3, Some("m")));
        let first: Vec<u8> = gguf.tensors().map(|tensor| tensor.bytes[0]).collect();
        assert_eq!(first, [0, 1, 2]);
    }
    let renamed = folder.join("m.gguf");
    std::fs::copy(path(0), &renamed).unwrap();
    let error = Gguf::open(&renamed).unwrap_err().to_string();
    assert!(error.contains("this is a part of a model of 3 parts"), "{error}");
    std::fs::copy(path(1), path(2)).unwrap();
    let error = Gguf::open(&path(0)).unwrap_err().to_string();
    assert!(error.ends_with("metadata `split.no`: expected 2, as in the name of the file, found 1"), "{error}");
    std::fs::remove_file(path(2)).unwrap();
    let error = Gguf::open(&path(0)).unwrap_err().to_string();
    assert!(error.starts_with("cannot open ") && error.contains("m-00003-of-00003.gguf"), "{error}");
}

/// Returns a safetensors file with a header and data.
fn safetensors(header: serde_json::Value, data: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

#[test]
fn safetensors_are_read_from_shards() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("shards");
    std::fs::create_dir_all(&folder).unwrap();
    let one = safetensors(json!({"a": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}}), &[7; 12]);
    let two = safetensors(
        json!({"c": {"dtype": "F32", "shape": [], "data_offsets": [4, 8]},
               "b": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}),
        &[1, 1, 1, 1, 2, 2, 2, 2],
    );
    std::fs::write(folder.join("1.safetensors"), &one).unwrap();
    std::fs::write(folder.join("2.safetensors"), &two).unwrap();
    let index = folder.join("model.safetensors.index.json");
    let open = |weights: serde_json::Value| {
        std::fs::write(&index, json!({ "weight_map": weights }).to_string()).unwrap();
        Safetensors::open(&folder)
    };
    let model = open(json!({"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"})).unwrap();
    let tensor = FileTensor { name: "a", format: TensorFormat::BF16, extents: &[2, 3], bytes: &[7; 12] };
    assert_eq!(model.tensor("a"), Some(tensor));
    assert_eq!(model.tensor("c").unwrap().bytes, [2; 4]);
    assert_eq!(model.tensors().map(|tensor| tensor.name).collect::<Vec<_>>(), ["a", "b", "c"]);
    let refused = |weights, expected: &str| {
        let error = open(weights).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    };
    refused(
        json!({"a": "1.safetensors", "b": "1.safetensors"}),
        "tensor `b`: the index places it in `1.safetensors`, and that file lacks it",
    );
    refused(
        json!({"a": "../shards/1.safetensors"}),
        "`weight_map`: expected the name of a file beside the index, found `../shards/1.safetensors`",
    );
    std::fs::write(&index, "{\n\"weight_map\": 3}").unwrap();
    let error = Safetensors::open(&folder).unwrap_err().to_string();
    assert!(error.contains(", byte 16, index (JSON): invalid type: integer `3`, expected a map"), "{error}");
}

#[test]
fn damaged_safetensors_are_refused() {
    let tensor = |dtype: &str, shape: &[u64], offsets: [u64; 2], n| {
        let header = json!({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}});
        Safetensors::from_bytes("x", safetensors(header, &vec![0; n])).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(tensor("F32", &[2], [0, 8], 8), Ok(()));
    for (dtype, shape, offsets, n) in [
        ("F32", &[2][..], [0, 8], 7),
        ("F32", &[2], [0, 4], 4),
        ("F32", &[2], [8, 0], 8),
        ("F32", &[1 << 62, 4], [0, 8], 8),
        ("F32", &[2], [0, u64::MAX], 8),
        ("nonsense", &[2], [0, 8], 8),
    ] {
        let error = tensor(dtype, shape, offsets, n).unwrap_err();
        assert!(error.starts_with("x, byte 0, header of safetensors: "), "{error}");
    }
    assert_eq!(
        tensor("F8_E4M3", &[2], [0, 2], 2).unwrap_err(),
        "x, tensor `a`: F8_E4M3 is not supported; supported: F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL"
    );
    for length in [0, 1 << 40, u64::MAX] {
        assert!(Safetensors::from_bytes("x", length.to_le_bytes().to_vec()).is_err());
    }
}
