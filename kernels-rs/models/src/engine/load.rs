//! The loader, which makes layers on a device from the tensors of a checkpoint.

use super::attention::{AttentionLayer, AttentionShape};
use super::block::{FeedForward, NormLayer, TransformerBlock};
use super::embedding::Embedding;
use super::experts::ExpertNetworks;
use super::linear::{FileRows, LinearLayer};
use super::network::Network;
use super::vision::{PatchMerger, VisionLayerParameters, VisionTower, WeightAndBias};
use crate::checkpoint::Checkpoint;
use crate::configuration::{Configuration, Pairing, VisionConfiguration};
use crate::error::{Error, Result};
use crate::file::{FileTensor, TensorFormat};
use crate::image::ImageProcessor;
use crate::quantize;
use crate::tensors::{TensorRole, VisionRole};
use kernels_rs::quant::{Routing, Weights};
use runtime::Device;
use std::borrow::Cow;
use std::collections::HashMap;

/// The tensors of a model that are to be loaded, and the device to which they are loaded.
pub struct Loader<'a> {
    device: &'a Device,
    /// The path of the checkpoint, for messages.
    file: &'a str,
    configuration: &'a Configuration,
    tensors: HashMap<(TensorRole, usize), FileTensor<'a>>,
    /// Receives the bytes loaded so far, and the bytes of all tensors.
    progress: &'a mut dyn FnMut(u64, u64),
    loaded: u64,
    total: u64,
}

impl<'a> Loader<'a> {
    /// Finds each tensor that the configuration needs, and rejects formats that the engine does not
    /// read ([`Checkpoint::weights`]). `progress` receives the bytes loaded so far,
    /// and the bytes of all tensors.
    pub fn new(
        device: &'a Device,
        checkpoint: &'a Checkpoint,
        configuration: &'a Configuration,
        progress: &'a mut dyn FnMut(u64, u64),
    ) -> Result<Loader<'a>> {
        let weights = checkpoint.weights(configuration)?;
        let total = weights.iter().map(|(_, tensor)| tensor.bytes.len() as u64).sum();
        let tensors = weights.into_iter().map(|(needed, tensor)| ((needed.role, needed.index), tensor)).collect();
        Ok(Loader { device, file: checkpoint.file(), configuration, tensors, progress, loaded: 0, total })
    }

    /// Sets the device to which the next tensors are loaded.
    pub fn set_device(&mut self, device: &'a Device) {
        self.device = device;
    }

    /// Returns a tensor to be loaded, and counts its bytes as loaded.
    fn tensor_counted(&mut self, role: TensorRole, layer: usize) -> Result<FileTensor<'a>> {
        let tensor = self.tensors.get(&(role, layer)).copied().ok_or_else(|| {
            Error::tensor(
                self.file,
                &format!("{role:?} of layer {layer}"),
                "the configuration does not list the tensor",
            )
        })?;
        self.loaded += tensor.bytes.len() as u64;
        (self.progress)(self.loaded.min(self.total), self.total);
        Ok(tensor)
    }

    /// Returns the elements of a vector as `f32`.
    pub fn vector(&mut self, role: TensorRole, layer: usize) -> Result<Vec<f32>> {
        let tensor = self.tensor_counted(role, layer)?;
        self.elements(&tensor)
    }

    /// Returns the elements of a tensor as `f32`.
    fn elements(&self, tensor: &FileTensor<'_>) -> Result<Vec<f32>> {
        quantize::dequantized(tensor.format, tensor.bytes).ok_or_else(|| {
            let problem = format!("cannot convert {} bytes of the format {}", tensor.bytes.len(), tensor.format);
            Error::tensor(self.file, tensor.name, problem)
        })
    }

    /// Uploads a layer whose matrix has the rows of several tensors, in the order of `roles`.
    /// Neighboring tensors of equal formats become one part.
    fn linear(&mut self, roles: &[TensorRole], layer: usize, bias: Option<Vec<f32>>) -> Result<LinearLayer> {
        let mut parts: Vec<(TensorFormat, [usize; 2], Cow<'a, [u8]>)> = Vec::new();
        for role in roles {
            let tensor = self.tensor_counted(*role, layer)?;
            let [rows, columns] = self.matrix(&tensor)?;
            let bytes = match self.heads_to_reorder(*role) {
                Some(heads) => Cow::Owned(rows_in_halves(tensor.bytes, rows, heads)),
                None => Cow::Borrowed(tensor.bytes),
            };
            match parts.last_mut() {
                Some((format, part_extents, part)) if *format == tensor.format && part_extents[1] == columns => {
                    part.to_mut().extend_from_slice(&bytes);
                    part_extents[0] += rows;
                }
                _ => parts.push((tensor.format, [rows, columns], bytes)),
            }
        }
        let rows: Vec<FileRows<'_>> = parts
            .iter()
            .map(|(format, extents, bytes)| FileRows { format: *format, extents: *extents, bytes })
            .collect();
        LinearLayer::new(self.device, &rows, bias.as_deref())
    }

    /// Returns the number of heads of a matrix whose rows the loader moves: queries or keys with
    /// [`Pairing::Neighbors`].
    fn heads_to_reorder(&self, role: TensorRole) -> Option<usize> {
        if self.configuration.rotary.pairing == Pairing::Halves {
            return None;
        }
        match role {
            TensorRole::Query => Some(self.configuration.heads),
            TensorRole::Key => Some(self.configuration.kv_heads),
            _ => None,
        }
    }

    /// Returns the numbers of rows and columns of a matrix.
    fn matrix(&self, tensor: &FileTensor<'_>) -> Result<[usize; 2]> {
        match *tensor.extents {
            [rows, columns] => Ok([rows as usize, columns as usize]),
            _ => Err(Error::tensor(
                self.file,
                tensor.name,
                format!("expected a matrix, found extents {:?}", tensor.extents),
            )),
        }
    }

    /// Uploads the embedding.
    pub fn embedding(&mut self) -> Result<Embedding> {
        let tensor = self.tensor_counted(TensorRole::Embedding, 0)?;
        let extents = self.matrix(&tensor)?;
        Embedding::new(self.device, &FileRows { format: tensor.format, extents, bytes: tensor.bytes })
    }

    /// Uploads the output matrix. A tied model uploads the embedding a second time.
    pub fn output(&mut self) -> Result<LinearLayer> {
        let role = if self.configuration.has_tied_output { TensorRole::Embedding } else { TensorRole::Output };
        self.linear(&[role], 0, None)
    }

    /// Uploads the weights of an RMS norm.
    pub fn norm(&mut self, role: TensorRole, layer: usize) -> Result<NormLayer> {
        let weight = self.vector(role, layer)?;
        NormLayer::new(self.device, &weight, self.configuration.epsilon)
    }

    /// Uploads a matrix of all experts of a layer: the rows of one expert after those of another.
    fn expert_matrix(&mut self, role: TensorRole, layer: usize) -> Result<Weights> {
        let tensor = self.tensor_counted(role, layer)?;
        let (Some(format), &[count, rows, _]) = (tensor.format.quant_format(), tensor.extents) else {
            let problem = format!("found experts of the format {} and the extents {:?}", tensor.format, tensor.extents);
            return Err(Error::tensor(self.file, tensor.name, problem));
        };
        let rows = (count * rows) as usize;
        let blocks = self.device.upload(tensor.bytes)?;
        let blocks = blocks.view([rows, tensor.bytes.len() / rows.max(1)])?;
        Ok(Weights::from_blocks(self.device, format, &blocks)?)
    }

    /// Uploads the transformer block of a layer.
    pub fn block(&mut self, layer: usize) -> Result<TransformerBlock> {
        let configuration = self.configuration;
        let bias = if configuration.architecture.has_biases() {
            let mut all = Vec::new();
            for role in [TensorRole::QueryBias, TensorRole::KeyBias, TensorRole::ValueBias] {
                all.extend(self.vector(role, layer)?);
            }
            Some(all)
        } else {
            None
        };
        let projection = self.linear(&[TensorRole::Query, TensorRole::Key, TensorRole::Value], layer, bias)?;
        let norms = if configuration.architecture.has_head_norms() {
            Some([self.vector(TensorRole::QueryNorm, layer)?, self.vector(TensorRole::KeyNorm, layer)?])
        } else {
            None
        };
        let norms = norms.as_ref().map(|[q, k]| [&**q, &**k]);
        let output = self.linear(&[TensorRole::AttentionOutput], layer, None)?;
        let attention = AttentionLayer::new(self.device, AttentionShape::of(configuration), projection, norms, output)?;
        let network = match &configuration.experts {
            None => {
                let gate_and_up = self.linear(&[TensorRole::Gate, TensorRole::Up], layer, None)?;
                FeedForward::Network(Network::new(gate_and_up, self.linear(&[TensorRole::Down], layer, None)?)?)
            }
            Some(experts) => {
                let router = self.linear(&[TensorRole::Router], layer, None)?;
                let roles = [TensorRole::ExpertGate, TensorRole::ExpertUp, TensorRole::ExpertDown];
                let [gate, up, down] = roles.map(|role| self.expert_matrix(role, layer));
                let routing = Routing::softmax(experts.used);
                let routing = if experts.normalized { routing.normalized() } else { routing };
                FeedForward::Experts(ExpertNetworks::new(router, routing, [gate?, up?, down?])?)
            }
        };
        Ok(TransformerBlock {
            attention_norm: self.norm(TensorRole::AttentionNorm, layer)?,
            attention,
            network_norm: self.norm(TensorRole::NetworkNorm, layer)?,
            network,
        })
    }
}

impl Loader<'_> {
    /// Returns the elements of a tensor of the vision tower.
    fn vision(&mut self, role: VisionRole, layer: usize) -> Result<Vec<f32>> {
        self.vector(TensorRole::Vision(role), layer)
    }

    /// Returns the elements of a weight and of its bias.
    fn pair(&mut self, [weight, bias]: [VisionRole; 2], layer: usize) -> Result<WeightAndBias> {
        Ok(WeightAndBias { weight: self.vision(weight, layer)?, bias: self.vision(bias, layer)? })
    }

    /// Uploads a merger: the norm, then the matrices up and down, each with its bias.
    fn merger(&mut self, roles: [VisionRole; 6], at: usize, epsilon: f32) -> Result<PatchMerger> {
        let [norm, norm_bias, up, up_bias, down, down_bias] = roles;
        let norm = self.pair([norm, norm_bias], at)?;
        let mut linear = |[weight, bias]: [VisionRole; 2]| {
            let bias = self.vision(bias, at)?;
            self.linear(&[TensorRole::Vision(weight)], at, Some(bias))
        };
        let (up, down) = (linear([up, up_bias])?, linear([down, down_bias])?);
        PatchMerger::new(self.device, norm, epsilon, up, down)
    }

    /// Uploads a vision tower.
    pub fn tower(&mut self, vision: &VisionConfiguration, processor: ImageProcessor) -> Result<VisionTower> {
        use VisionRole::*;
        // GGUF has a tensor for each frame, and files of transformers have one for all frames.
        let frames = (0..vision.frames).filter(|frame| self.tensors.contains_key(&(TensorRole::Vision(Patch), *frame)));
        let frames: Vec<usize> = frames.collect();
        let mut frame_weights = Vec::new();
        for frame in &frames {
            frame_weights.push(self.vision(Patch, *frame)?);
        }
        let color_elements = vision.patch * vision.patch * vision.frames / frames.len().max(1);
        let colors = |color: usize| {
            frame_weights.iter().flat_map(move |frame| &frame[color * color_elements..][..color_elements])
        };
        let weight = (0..3 * vision.width).flat_map(colors).copied().collect();
        let patch = WeightAndBias { weight, bias: self.vision(PatchBias, 0)? };
        let positions = self.vision(Positions, 0)?;
        let merger = [MergerNorm, MergerNormBias, MergerUp, MergerUpBias, MergerDown, MergerDownBias];
        let merger = self.merger(merger, 0, vision.epsilon)?;
        let deepstack_roles =
            [DeepstackNorm, DeepstackNormBias, DeepstackUp, DeepstackUpBias, DeepstackDown, DeepstackDownBias];
        let deepstack = (0..vision.deepstack.len()).map(|i| self.merger(deepstack_roles, i, vision.epsilon));
        let deepstack = deepstack.collect::<Result<Vec<PatchMerger>>>()?;
        let projection = self.tensors.get(&(TensorRole::Vision(Projection), 0));
        let is_bf16 = projection.is_some_and(|tensor| tensor.format == TensorFormat::BF16);
        let device = self.device;
        let layer = |i: usize| {
            Ok(VisionLayerParameters {
                norm: self.pair([AttentionNorm, AttentionNormBias], i)?,
                projection: self.pair([Projection, ProjectionBias], i)?,
                output: self.pair([AttentionOutput, AttentionOutputBias], i)?,
                network_norm: self.pair([NetworkNorm, NetworkNormBias], i)?,
                up: self.pair([Up, UpBias], i)?,
                down: self.pair([Down, DownBias], i)?,
            })
        };
        VisionTower::new(device, (vision.clone(), processor), patch, positions, is_bf16, layer, (merger, deepstack))
    }
}

/// Moves the rows of each head from the order of neighboring pairs to that of halves. With D rows a
/// head, row 2·i + j of a head becomes row j·D/2 + i.
fn rows_in_halves(bytes: &[u8], rows: usize, heads: usize) -> Vec<u8> {
    let (row_bytes, head) = (bytes.len() / rows.max(1), rows / heads.max(1));
    let from = |row: usize| {
        let (head_index, within) = (row / head, row % head);
        let (j, i) = (within / (head / 2), within % (head / 2));
        head_index * head + 2 * i + j
    };
    (0..rows).flat_map(|row| &bytes[from(row) * row_bytes..][..row_bytes]).copied().collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_of_a_head_are_split_into_halves() {
        // Two heads of four rows, of two bytes each.
        let bytes: Vec<u8> = (0..8).flat_map(|row| [row, 10 + row]).collect();
        let halves = super::rows_in_halves(&bytes, 8, 2);
        assert_eq!(halves.iter().step_by(2).copied().collect::<Vec<u8>>(), [0, 2, 1, 3, 4, 6, 5, 7]);
    }
}
