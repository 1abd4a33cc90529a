"""Segments objects through a video: each frame attends to the memories of the frames before"""

import torch
from torch import nn

SIZE, MEMORY, MASKMEM = 512, 64, 7


class VideoPredictor(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.image_encoder = nn.Sequential(
            nn.Conv2d(3, width, 7, stride=4, padding=3), nn.GELU(), nn.Conv2d(width, MEMORY, 3, stride=2, padding=1)
        )
        self.memory_attention = nn.MultiheadAttention(MEMORY, 1, batch_first=True)
        self.mask_decoder = nn.Sequential(
            nn.Conv2d(MEMORY, MEMORY, 3, padding=1), nn.GELU(), nn.ConvTranspose2d(MEMORY, 1, 4, stride=4)
        )
        self.memory_encoder = nn.Conv2d(MEMORY + 1, MEMORY, 3, padding=1)

    def init_state(self, num_objects, offload_state_to_cpu=False):
        device = next(self.parameters()).device
        return {
            "device": device,
            "storage_device": torch.device("cpu") if offload_state_to_cpu else device,
            "num_objects": num_objects,
            "output_dict": {"cond_frame_outputs": {}, "non_cond_frame_outputs": {}},
        }

    def _condition_with_memory(self, state, frame_idx, features):
        outputs, memories = state["output_dict"], []
        for previous in range(frame_idx - MASKMEM, frame_idx):
            out = outputs["non_cond_frame_outputs"].get(previous) or outputs["cond_frame_outputs"].get(previous)
            if out is not None:
                memory = out["maskmem_features"].to(state["device"], non_blocking=True).to(features.dtype)
                memories.append(nn.functional.avg_pool2d(memory, 4).flatten(2).transpose(1, 2))
        if not memories:
            return features
        tokens = features.flatten(2).transpose(1, 2)
        attended, _ = self.memory_attention(tokens, torch.cat(memories, 1), torch.cat(memories, 1), need_weights=False)
        return features + attended.transpose(1, 2).view_as(features)

    def _run_single_frame_inference(self, state, frame_idx, image):
        features = self.image_encoder(image).expand(state["num_objects"], -1, -1, -1)
        features = self._condition_with_memory(state, frame_idx, features)
        pred_masks = self.mask_decoder(features)
        small = nn.functional.avg_pool2d(torch.sigmoid(pred_masks), 4)
        maskmem_features = self.memory_encoder(torch.cat([features, small], dim=1)).to(torch.bfloat16)
        compact = {
            "maskmem_features": maskmem_features.to(state["storage_device"], non_blocking=True),
            "pred_masks": pred_masks.to(state["storage_device"], non_blocking=True),
        }
        return compact, pred_masks

    @torch.inference_mode()
    def propagate_in_video(self, state, frames):
        for frame_idx, frame in enumerate(frames):
            image = torch.from_numpy(frame).to(state["device"]).permute(2, 0, 1)[None].float() / 255
            key = "cond_frame_outputs" if frame_idx == 0 else "non_cond_frame_outputs"
            compact, pred_masks = self._run_single_frame_inference(state, frame_idx, image)
            state["output_dict"][key][frame_idx] = compact
            yield frame_idx, (pred_masks > 0).float().mean(dim=(1, 2, 3)).tolist()
