//! Reader of safetensors: one file, or several shards with an index.

use super::bytes::{FileBytes, name};
use super::{FileTensor, TensorFormat};
use crate::error::{Error, Result, quoted};
use ::safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::ops::Range;
use std::path::{Component, Path};

/// The largest index of shards that is read, in bytes. For 100,000 tensors, an index has 10 MB.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// The most shards of a model.
const MAX_SHARDS: usize = 4096;

/// The tensors of a safetensors file or of all shards of a model.
#[derive(Debug)]
pub struct Safetensors {
    shards: Vec<Shard>,
    tensors: Vec<SafetensorsRecord>,
    by_name: HashMap<String, usize>,
}

#[derive(Debug)]
struct Shard {
    file: String,
    bytes: FileBytes,
}

#[derive(Debug)]
struct SafetensorsRecord {
    name: String,
    format: TensorFormat,
    extents: Vec<u64>,
    shard: usize,
    bytes: Range<usize>,
}

/// The index of shards, `model.safetensors.index.json`.
#[derive(serde::Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

impl Safetensors {
    /// Maps a file, or the shards of an index. In a folder, the file is the index
    /// `model.safetensors.index.json` or, if there is none, `model.safetensors`.
    ///
    /// # Errors
    /// If a file cannot be opened or mapped, is damaged, or lacks a tensor that the index lists.
    /// Also if a tensor has a type that is not supported.
    pub fn open(path: &Path) -> Result<Safetensors> {
        let file = if path.is_dir() {
            let choices = ["model.safetensors.index.json", "model.safetensors"].map(|file| path.join(file));
            choices.into_iter().find(|choice| choice.exists()).ok_or_else(|| {
                let problem = "expected model.safetensors, model.safetensors.index.json or a single GGUF file";
                Error::field(&name(path), "folder", problem)
            })?
        } else {
            path.to_owned()
        };
        if file.extension().is_some_and(|extension| extension == "json") {
            Safetensors::sharded(&file)
        } else {
            Safetensors::assemble(vec![Shard::map(&file)?])
        }
    }

    /// Reads a file from memory. Error messages use the name `file`.
    ///
    /// # Errors
    /// If the bytes are damaged or are not a safetensors file. Also if a tensor has a type that is
    /// not supported.
    pub fn from_bytes(file: &str, bytes: Vec<u8>) -> Result<Safetensors> {
        Safetensors::assemble(vec![Shard { file: file.to_owned(), bytes: FileBytes::Owned(bytes) }])
    }

    /// Maps the shards that an index names, and checks that each tensor is in its shard.
    fn sharded(path: &Path) -> Result<Safetensors> {
        let index = name(path);
        let bytes = FileBytes::read(path, MAX_INDEX_BYTES)?;
        let Index { weight_map } =
            serde_json::from_slice(&bytes).map_err(|error| json_error(&index, &bytes, "index", &error))?;
        let mut files: Vec<&String> = weight_map.values().collect();
        files.sort();
        files.dedup();
        if files.len() > MAX_SHARDS {
            let problem = format!("expected at most {MAX_SHARDS} files, found {}", files.len());
            return Err(Error::field(&index, "`weight_map`", problem));
        }
        let shards = files.iter().map(|file| {
            // A path with folders could lead to any file of the machine, so an index may only name
            // files beside it.
            let mut components = Path::new(file).components();
            match (components.next(), components.next()) {
                (Some(Component::Normal(_)), None) => Shard::map(&path.with_file_name(file)),
                _ => {
                    let problem =
                        format!("expected the name of a file beside the index, found {}", quoted(file.as_bytes()));
                    Err(Error::field(&index, "`weight_map`", problem))
                }
            }
        });
        let model = Safetensors::assemble(shards.collect::<Result<Vec<_>>>()?)?;
        for (tensor, file) in &weight_map {
            let at = files.binary_search(&file).ok();
            let found = model.by_name.get(tensor).map(|i| model.tensors[*i].shard);
            if found.is_none() || found != at {
                let problem = format!("the index places it in `{file}`, and that file lacks it");
                return Err(Error::tensor(&index, tensor, problem));
            }
        }
        Ok(model)
    }

    /// Reads the headers of shards, whose tensors must have different names.
    fn assemble(shards: Vec<Shard>) -> Result<Safetensors> {
        let mut model = Safetensors { shards: Vec::new(), tensors: Vec::new(), by_name: HashMap::new() };
        for (at, shard) in shards.into_iter().enumerate() {
            for record in shard.records(at)? {
                if model.by_name.insert(record.name.clone(), model.tensors.len()).is_some() {
                    return Err(Error::tensor(&shard.file, &record.name, "another shard has a tensor of this name"));
                }
                model.tensors.push(record);
            }
            model.shards.push(shard);
        }
        Ok(model)
    }

    /// Returns the path of the first file, empty if an index lists no tensors.
    pub fn file(&self) -> &str {
        self.shards.first().map_or("", |shard| &shard.file)
    }

    /// Returns the count of files.
    pub fn parts(&self) -> usize {
        self.shards.len()
    }

    /// Returns the tensors, file after file, in the order of their bytes.
    pub fn tensors(&self) -> impl Iterator<Item = FileTensor<'_>> {
        self.tensors.iter().map(|record| self.tensor_of(record))
    }

    /// Returns the tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<FileTensor<'_>> {
        self.by_name.get(name).map(|i| self.tensor_of(&self.tensors[*i]))
    }

    fn tensor_of<'a>(&'a self, record: &'a SafetensorsRecord) -> FileTensor<'a> {
        FileTensor {
            name: &record.name,
            format: record.format,
            extents: &record.extents,
            bytes: &self.shards[record.shard].bytes[record.bytes.clone()],
        }
    }
}

impl Shard {
    fn map(path: &Path) -> Result<Shard> {
        Ok(Shard { file: name(path), bytes: FileBytes::map(path)? })
    }

    /// Reads the header of shard number `shard`. The `safetensors` crate checks that tensors fill
    /// the data without gaps or overlap.
    fn records(&self, shard: usize) -> Result<Vec<SafetensorsRecord>> {
        let damaged = |problem: String| Error::Damaged {
            file: self.file.clone(),
            offset: 0,
            field: "header of safetensors".to_owned(),
            problem,
        };
        let (header, metadata) = SafeTensors::read_metadata(&self.bytes).map_err(|error| damaged(error.to_string()))?;
        // The length of the header, in eight bytes, precedes the header.
        let start = 8 + header;
        let mut tensors: Vec<_> = metadata.tensors().into_iter().collect();
        tensors.sort_by_key(|(_, info)| info.data_offsets.0);
        tensors
            .into_iter()
            .map(|(name, info)| {
                let format = format(info.dtype).ok_or_else(|| {
                    let supported = "F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL";
                    Error::unsupported(&self.file, format!("tensor `{name}`"), format!("{:?}", info.dtype), supported)
                })?;
                let (from, to) = info.data_offsets;
                let bytes = start.checked_add(from).zip(start.checked_add(to)).map(|(from, to)| from..to);
                let bytes = bytes
                    .filter(|range| self.bytes.get(range.clone()).is_some())
                    .ok_or_else(|| damaged(format!("tensor `{name}` ends after the file: it is truncated")))?;
                let extents: Vec<u64> = info.shape.iter().map(|extent| *extent as u64).collect();
                Ok(SafetensorsRecord { name, format, extents, shard, bytes })
            })
            .collect()
    }
}

/// Returns the format of a safetensors type. U8 and BOOL become I8, which also has one byte.
fn format(dtype: Dtype) -> Option<TensorFormat> {
    match dtype {
        Dtype::F64 => Some(TensorFormat::F64),
        Dtype::F32 => Some(TensorFormat::F32),
        Dtype::F16 => Some(TensorFormat::F16),
        Dtype::BF16 => Some(TensorFormat::BF16),
        Dtype::I64 => Some(TensorFormat::I64),
        Dtype::I32 => Some(TensorFormat::I32),
        Dtype::I16 => Some(TensorFormat::I16),
        Dtype::I8 | Dtype::U8 | Dtype::BOOL => Some(TensorFormat::I8),
        _ => None,
    }
}

/// Returns an error about JSON, at the byte where the parser stopped.
pub(crate) fn json_error(file: &str, bytes: &[u8], field: &str, error: &serde_json::Error) -> Error {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').take(error.line().saturating_sub(1));
    let offset = lines.map(<[u8]>::len).sum::<usize>() + error.column().saturating_sub(1);
    Error::Damaged {
        file: file.to_owned(),
        offset: offset as u64,
        field: format!("{field} (JSON)"),
        problem: error.to_string(),
    }
}
