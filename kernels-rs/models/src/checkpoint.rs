//! A model on disk: its tensors, configuration, tokenizer and chat template, from GGUF or
//! safetensors.

use crate::configuration::{Configuration, Experts};
use crate::error::{Error, Result, quoted};
use crate::file::bytes::name;
use crate::file::gguf::{Gguf, MetadataValue};
use crate::file::safetensors::Safetensors;
use crate::file::{FileTensor, TensorFormat};
use crate::memory::WeightBytes;
use crate::template::ChatTemplate;
use crate::tensors::{Naming, TensorRequirement, TensorRole, is_derived};
use crate::tokenizer::{Tokenizer, read_json_or_null};
use serde_json::Value;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A model on disk, whose files are mapped into memory.
#[derive(Debug)]
pub struct Checkpoint {
    files: Files,
    /// The vision tower of a GGUF model, if its file was added.
    projector: Option<Gguf>,
    /// The folder of `config.json` and `tokenizer.json`.
    folder: PathBuf,
}

/// The files of a model.
#[derive(Debug)]
pub enum Files {
    /// A GGUF file, or all parts of a split one.
    Gguf(Gguf),
    /// Safetensors, with `config.json` beside them.
    Safetensors(Safetensors),
}

/// Returns the GGUF file of a folder that has one, and no safetensors under the names that
/// [`Safetensors::open`] looks for.
fn only_gguf(folder: &Path) -> Option<PathBuf> {
    if ["model.safetensors.index.json", "model.safetensors"].iter().any(|name| folder.join(name).exists()) {
        return None;
    }
    let paths = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "gguf"));
    let file = files.next()?;
    files.next().is_none().then_some(file)
}

impl Checkpoint {
    /// Opens a GGUF file, a safetensors file or index, or the folder of either. A folder without
    /// safetensors must have a single GGUF file. Reads the headers, and no tensors.
    ///
    /// # Errors
    /// If a file cannot be opened, is damaged, or has neither format.
    pub fn open(path: &Path) -> Result<Checkpoint> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("");
        let files = match extension {
            _ if path.is_dir() => match only_gguf(path) {
                Some(file) => Files::Gguf(Gguf::open(&file)?),
                None => Files::Safetensors(Safetensors::open(path)?),
            },
            "safetensors" | "json" => Files::Safetensors(Safetensors::open(path)?),
            // The reader of GGUF rejects files of other formats.
            _ => Files::Gguf(Gguf::open(path)?),
        };
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        Ok(Checkpoint { files, projector: None, folder: folder.to_owned() })
    }

    /// Adds the vision tower of a GGUF model, which is a separate GGUF file (*mmproj*).
    ///
    /// # Errors
    /// If the model is in safetensors, or the file of the tower cannot be opened or is damaged.
    pub fn with_projector(self, path: &Path) -> Result<Checkpoint> {
        if let Files::Safetensors(safetensors) = &self.files {
            let problem = "safetensors have their vision tower in the same files";
            return Err(Error::field(safetensors.file(), "vision tower", problem));
        }
        Ok(Checkpoint { projector: Some(Gguf::open(path)?), ..self })
    }

    /// Returns the file of the vision tower, if it is a separate one.
    pub fn projector(&self) -> Option<&Gguf> {
        self.projector.as_ref()
    }

    /// Returns the folder of `config.json` and `tokenizer.json`.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the files.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Returns the path of the first file.
    pub fn file(&self) -> &str {
        match &self.files {
            Files::Gguf(gguf) => gguf.file(),
            Files::Safetensors(safetensors) => safetensors.file(),
        }
    }

    /// Returns the naming convention of the tensors.
    pub fn naming(&self) -> Naming {
        match &self.files {
            Files::Gguf(_) => Naming::Gguf,
            Files::Safetensors(_) => Naming::Transformers,
        }
    }

    /// Returns the tensors in the order of the files, those of a separate vision tower last.
    pub fn tensors(&self) -> Vec<FileTensor<'_>> {
        match &self.files {
            Files::Gguf(gguf) => gguf.tensors().chain(self.projector.iter().flat_map(Gguf::tensors)).collect(),
            Files::Safetensors(safetensors) => safetensors.tensors().collect(),
        }
    }

    /// Returns the tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<FileTensor<'_>> {
        match &self.files {
            Files::Gguf(gguf) => gguf.tensor(name).or_else(|| self.projector.as_ref()?.tensor(name)),
            Files::Safetensors(safetensors) => safetensors.tensor(name),
        }
    }

    /// Reads the configuration.
    ///
    /// # Errors
    /// If the configuration is absent, damaged, or needs something this crate lacks. Also if the
    /// files of model and vision tower do not belong together.
    pub fn configuration(&self) -> Result<Configuration> {
        match &self.files {
            Files::Gguf(gguf) => match &self.projector {
                None => Configuration::from_gguf(gguf),
                Some(projector) => Configuration::from_gguf_with(gguf, projector),
            },
            Files::Safetensors(_) => {
                let path = self.folder.join("config.json");
                let json = read_json_or_null(&path)?;
                if json.is_null() {
                    let problem = "the file is required beside safetensors, and it is absent";
                    return Err(Error::field(&name(&path), "file", problem));
                }
                Configuration::from_json(&name(&path), &json)
            }
        }
    }

    /// Reads the tokenizer.
    ///
    /// # Errors
    /// Returns the errors of [`Tokenizer::from_gguf`] and [`Tokenizer::from_json`].
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        match &self.files {
            Files::Gguf(gguf) => Tokenizer::from_gguf(gguf),
            Files::Safetensors(_) => Tokenizer::from_json(&self.folder.join("tokenizer.json")),
        }
    }

    /// Reads the chat template, `None` if the model has none. The source is the metadata of GGUF,
    /// `chat_template.jinja`, or `tokenizer_config.json`. Of several templates in
    /// `tokenizer_config.json`, the one with the name `default` is read.
    ///
    /// # Errors
    /// If a file cannot be read or is damaged, or there are several templates and none is the
    /// default. Also returns the errors of [`ChatTemplate::new`].
    pub fn chat_template(&self, tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>> {
        let source = match &self.files {
            Files::Gguf(gguf) => {
                gguf.optional("tokenizer.chat_template", "a string", MetadataValue::text)?.map(str::to_owned)
            }
            Files::Safetensors(_) => {
                let path = self.folder.join("chat_template.jinja");
                if path.exists() {
                    let bytes = crate::file::bytes::FileBytes::read(&path, 1 << 20)?;
                    Some(String::from_utf8_lossy(&bytes).into_owned())
                } else {
                    let path = self.folder.join("tokenizer_config.json");
                    default_template(&name(&path), &read_json_or_null(&path)?["chat_template"])?
                }
            }
        };
        let text = |token: Option<&u32>| {
            let text = token.and_then(|token| tokenizer.text(*token)).unwrap_or_default();
            String::from_utf8_lossy(text).into_owned()
        };
        let special = tokenizer.special();
        let (bos, eos) = (text(special.bos.as_ref()), text(special.eos.first()));
        source.map(|source| ChatTemplate::new(&source, &bos, &eos)).transpose()
    }

    /// Returns the size of all tensors in the files, in bytes.
    pub fn tensor_bytes(&self) -> u64 {
        self.tensors().iter().map(|tensor| tensor.bytes.len() as u64).sum()
    }

    /// Returns each tensor that a configuration needs, in the order of [`Configuration::tensors`].
    ///
    /// # Errors
    /// If a tensor is absent, has other extents, or has a format for which there are no kernels.
    /// Also if a file has a tensor that the configuration does not use: results without the tensor
    /// would be wrong.
    pub fn weights(&self, configuration: &Configuration) -> Result<Vec<(TensorRequirement, FileTensor<'_>)>> {
        // Some files of tied models have the embedding a second time, as the output matrix.
        let tied_output = configuration.has_tied_output.then_some("lm_head.weight");
        let needed = configuration.tensors(self.naming());
        let user = configuration.architecture.name();
        let mut used = HashSet::new();
        let mut weights = Vec::with_capacity(needed.len());
        for requirement in needed {
            let name = &requirement.name;
            let Some(tensor) = self.tensor(name) else {
                return Err(Error::tensor(self.file(), name, format!("{user} needs the tensor, and it is absent")));
            };
            if tensor.extents != requirement.extents {
                let problem = format!("expected extents {:?}, found {:?}", requirement.extents, tensor.extents);
                return Err(Error::tensor(self.file(), name, problem));
            }
            self.check_format(requirement.role, &tensor)?;
            used.insert(tensor.name);
            weights.push((requirement, tensor));
        }
        let unused = |name: &str| !used.contains(name) && !is_derived(name) && Some(name) != tied_output;
        match self.tensors().into_iter().find(|tensor| unused(tensor.name)) {
            Some(tensor) => {
                let needed = format!("a model with the tensor `{}`", tensor.name);
                Err(Error::unsupported(self.file(), "tensors", needed, format!("the tensors of {user}")))
            }
            None => Ok(weights),
        }
    }

    /// Rejects a format that the engine does not read in a tensor of this use.
    fn check_format(&self, role: TensorRole, tensor: &FileTensor<'_>) -> Result<()> {
        let (format, rank) = (tensor.format, tensor.extents.len());
        let is_expert = matches!(role, TensorRole::ExpertGate | TensorRole::ExpertUp | TensorRole::ExpertDown);
        let is_vector = rank == 1 && !matches!(role, TensorRole::Vision(_));
        let is_read: fn(TensorFormat) -> bool = match (is_expert, is_vector) {
            (true, _) => |format| format.quant_format().is_some(),
            (false, true) => TensorFormat::is_dense,
            (false, false) => TensorFormat::has_kernels,
        };
        // The engine reads the experts of a layer from one tensor.
        if is_read(format) && (rank == 3 || !is_expert) {
            return Ok(());
        }
        let formats = TensorFormat::ALL.iter().filter(|format| is_read(**format));
        let names = formats.map(|format| format.name()).collect::<Vec<&str>>().join(", ");
        let (needed, supported) = match is_expert {
            true => (
                format!("a tensor of the format {format} for experts"),
                format!("all experts in one tensor of {names}"),
            ),
            false => (format!("the format {format}"), names),
        };
        Err(Error::unsupported(self.file(), format!("tensor `{}`", tensor.name), needed, supported))
    }

    /// Returns the bytes of the weights on devices. A tensor takes as many bytes as in the file.
    /// Exception: a vision tower's tensors that are not in BF16 become `f32`, with 4 bytes per
    /// element, except the matrices of its mergers. A tied output matrix counts in addition to the
    /// embedding, because both are uploaded.
    ///
    /// The sizes are approximate: norms and biases always become `f32`, and count as in the file.
    ///
    /// # Errors
    /// Returns the errors of [`Checkpoint::weights`].
    pub fn weight_bytes(&self, configuration: &Configuration) -> Result<WeightBytes> {
        let mut all = WeightBytes { first: 0, layers: vec![0; configuration.layers], last: 0 };
        for (needed, tensor) in self.weights(configuration)? {
            let bytes = tensor.bytes.len() as u64;
            match needed.role {
                TensorRole::Vision(role) if tensor.format != TensorFormat::BF16 && !role.is_merger() => {
                    all.first += 4 * tensor.elements();
                }
                TensorRole::Vision(_) => all.first += bytes,
                TensorRole::Embedding => {
                    all.first += bytes;
                    all.last += if configuration.has_tied_output { bytes } else { 0 };
                }
                TensorRole::OutputNorm | TensorRole::Output | TensorRole::RotaryDivisors => all.last += bytes,
                _ => all.layers[needed.index] += bytes,
            }
        }
        Ok(all)
    }

    /// Returns the bytes of the weights that a step of one token reads. The vision tower, the
    /// experts that the token does not use, and an embedding that is not tied do not count.
    ///
    /// # Errors
    /// Returns the errors of [`Checkpoint::weights`].
    pub fn weight_bytes_per_step(&self, configuration: &Configuration) -> Result<u64> {
        let weights = self.weights(configuration)?;
        // A tied embedding is also the output matrix, which each step reads whole.
        let read = |(needed, tensor): &(TensorRequirement, FileTensor<'_>)| {
            let bytes = tensor.bytes.len() as u64;
            match (needed.role, &configuration.experts) {
                (TensorRole::Embedding, _) if !configuration.has_tied_output => 0,
                (TensorRole::Vision(_), _) => 0,
                (
                    TensorRole::ExpertGate | TensorRole::ExpertUp | TensorRole::ExpertDown,
                    Some(Experts { count, used, .. }),
                ) => bytes / *count as u64 * *used as u64,
                _ => bytes,
            }
        };
        Ok(weights.iter().map(read).sum())
    }
}

/// Returns the template in the field `chat_template` of `tokenizer_config.json`, or `None` if the
/// field is absent. The field is a text, or a list of objects with `name` and `template`. `file` is
/// the name in messages.
fn default_template(file: &str, field: &Value) -> Result<Option<String>> {
    let wrong = |problem: String| Err(Error::field(file, "`chat_template`", problem));
    match field {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Array(list) => match list.iter().find(|entry| entry["name"] == "default") {
            Some(entry) => match entry["template"].as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => wrong("expected a text `template` in the entry with the name `default`".to_owned()),
            },
            None => {
                let names: Vec<&str> = list.iter().filter_map(|entry| entry["name"].as_str()).collect();
                let names = quoted(names.join(", ").as_bytes());
                wrong(format!("expected a template with the name `default`, found the names {names}"))
            }
        },
        _ => wrong("expected a text, or a list of objects with `name` and `template`".to_owned()),
    }
}
