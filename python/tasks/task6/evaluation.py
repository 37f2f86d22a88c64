"""What a run of the task starts with, and what is measured of the network and the answers that it left."""

from collections.abc import Mapping

import evidence
import numpy as np
import preparation
import torch
from grading.inputs import pack_inputs
from grading.run import Run
from grading.tensor_files import InvalidFiles, Spec, read_tensors
from images import PROBE_IMAGES, QUERY_IMAGES, held_out_images, probe_images, query_images, training_images
from network import CLASSES, SIDE, WEIGHTS, logits, seeded_weights

_PROBE: Spec = {
    "inputs": ("F32", (PROBE_IMAGES, 3, SIDE, SIDE)),
    "ids": ("I64", (PROBE_IMAGES,)),
    "probabilities": ("F32", (PROBE_IMAGES, CLASSES)),
}
_QUERY: Spec = {
    "inputs": ("F32", (QUERY_IMAGES, 3, SIDE, SIDE)),
    "probabilities": ("F32", (QUERY_IMAGES, CLASSES)),
}


def make_inputs(run: Run) -> dict[str, bytes]:
    """The files that a script starts with: labelled images, images to answer, and the seed of the weights."""
    training, probe = training_images(run), probe_images(run)
    return pack_inputs(
        run,
        images=training.pixels,
        labels=training.one_hot,
        probe_images=probe.pixels,
        probe_labels=probe.one_hot,
        query_images=query_images(run).pixels,
    )


def measure(run: Run, files: Mapping[str, bytes]) -> dict[str, float]:
    """Measure the network under the deployed preparation, and what the script prepared and answered.

    Four numbers say whether the network learned from the inputs that the script shows, whatever it took for inputs
    and for class ids: `own_images`, the correlation of the brightness of its inputs with that of the images they are
    made from; `own_information`, the nats that the network's answers to its query inputs tell about the hidden
    classes; `own_skill`, the share of the loss on its probe inputs and class ids that it takes off what knowing
    their frequencies leaves; `own_fit`, the nats by which it does worse on them (below 0) than on another way to
    prepare the same images.

    Returns:
        Besides those: `moved`, the length of the weights' way from their seeded values as a share of their length;
        `accuracy` on held-out images in the deployed preparation; `query_accuracy` of the answers to single images;
        `size`, the likeness of the inputs to resized images of any order of axes; `channels`, the correlation of
        their colour casts with those of the images; `ids`, the share of right class ids; `single`, the error of the
        answers to single images as a share of that of equal odds.

    Raises:
        InvalidFiles: A file is missing or not as specified.
    """
    torch.set_num_threads(1)
    weights = read_tensors(files, "weights.safetensors", WEIGHTS)
    probe = read_tensors(files, "probe.safetensors", _PROBE)
    query = read_tensors(files, "query.safetensors", _QUERY)
    if probe["ids"].min() < 0 or probe["ids"].max() >= CLASSES:
        raise InvalidFiles(f"probe.safetensors: expected ids to hold numbers from 0 to {CLASSES - 1}")
    # Huge weights overflow: their measures are then not numbers, and earn nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        return {
            "moved": evidence.distance(weights, seeded_weights(run.init_seed)),
            **_quality(run, weights, query),
            **_learning(run, weights, probe, query),
            **_contract(run, weights, probe, query),
        }


def _quality(run: Run, weights: Mapping[str, np.ndarray], query: Mapping[str, np.ndarray]) -> dict[str, float]:
    held_out = held_out_images(run)
    answers = logits(weights, preparation.deployed(held_out.pixels)).argmax(1)
    return {
        "accuracy": float((answers == held_out.ids).mean()),
        "query_accuracy": float((query["probabilities"].argmax(1) == query_images(run).ids).mean()),
    }


def _learning(
    run: Run, weights: Mapping[str, np.ndarray], probe: Mapping[str, np.ndarray], query: Mapping[str, np.ndarray]
) -> dict[str, float]:
    images, inputs = _shown(run, probe, query)
    loss = evidence.loss(logits(weights, probe["inputs"]), probe["ids"])
    other_ways = preparation.all_ways(probe_images(run).pixels)
    known = evidence.entropy(probe["ids"])
    brightness = [values.mean((1, 2, 3), dtype=np.float64)[None] for values in (inputs, images)]
    return {
        "own_images": evidence.likeness(*brightness),
        "own_information": evidence.information(logits(weights, query["inputs"]).argmax(1), query_images(run).ids),
        "own_skill": evidence.share_of(known - loss, known),
        "own_fit": min(evidence.loss(logits(weights, way), probe["ids"]) for way in other_ways) - loss,
    }


def _contract(
    run: Run, weights: Mapping[str, np.ndarray], probe: Mapping[str, np.ndarray], query: Mapping[str, np.ndarray]
) -> dict[str, float]:
    images, inputs = _shown(run, probe, query)
    claimed = np.concatenate([probe["probabilities"], query["probabilities"]])
    answers = evidence.probabilities(logits(weights, inputs))
    casts = [_casts(inputs.mean((2, 3))), _casts(images.mean((1, 2)))]
    return {
        "size": max(evidence.likeness(inputs, way) for way in preparation.resized_ways(images)),
        "channels": evidence.likeness(*casts),
        "ids": float((probe["ids"] == probe_images(run).ids).mean()),
        "single": evidence.share_of(float(np.abs(claimed - answers).sum()), float(np.abs(answers - 1 / CLASSES).sum())),
    }


def _shown(run: Run, probe: Mapping[str, np.ndarray], query: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    images = np.concatenate([probe_images(run).pixels, query_images(run).pixels])
    return images, np.concatenate([probe["inputs"], query["inputs"]])


def _casts(means: np.ndarray) -> np.ndarray:
    # How far each colour of an image is from the image's grey, all images in one row.
    return (means - means.mean(1, keepdims=True)).reshape(1, -1)
