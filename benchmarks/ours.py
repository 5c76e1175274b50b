"""This project's engine as a system to measure. It runs in the engine's own environment."""

from __future__ import annotations

import sys
from copy import copy
from functools import cached_property

import numpy as np
import onnxruntime as ort

from benchmarks.backend import Job, Options
from benchmarks.lengths import at_most, exactly
from benchmarks.work import MOST_TOKENS, Decode, Output, Products, Steps, Translate, Work
from function.engine.model import Model
from function.engine.pack import ModelPack
from function.engine.searches import Searches
from function.engine.sessions import open_decoder

_FORBIDDEN = {"torch", "transformers", "optimum"}


class Ours:
    """A pack, its sessions created once, when first needed."""

    def __init__(self, options: Options) -> None:
        self._pack = ModelPack.open(options.model)
        self._threads = options.threads
        self._searches = Searches(self._pack, self._threads)
        self._models: dict[int | None, Model] = {}  # by the exact number of target tokens, if there is one

    def job(self, work: Work) -> Job:
        if loaded := _FORBIDDEN & set(sys.modules):
            raise AssertionError(f"the engine has loaded {loaded}")
        match work:
            case Decode():
                return self._decoding(work)
            case Translate():
                return self._translation(work)
            case Steps():
                return self._steps(work)
            case Products():
                return self._products(work)
            case _:
                raise NotImplementedError(f"{type(work).__name__} is no work for the engine")

    def _decoding(self, work: Decode) -> Job:
        search = copy(self._searches)  # with the same sessions
        search.pack = exactly(self._pack, work.target_tokens)

        def run() -> Output:
            found = search(work.sources, lambda: False)
            return Output(lengths=[len(hypothesis.token_ids) for hypothesis in found if hypothesis])

        return run

    def _translation(self, work: Translate) -> Job:
        model = self._model(work.target_tokens)
        language_token = self._pack.targets[0].token
        groups = [work.texts] if work.together else [[text] for text in work.texts]

        def run() -> Output:
            return Output(texts=[draft.text for group in groups for draft in model.decode(group, language_token)])

        return run

    def _steps(self, work: Steps) -> Job:
        """One step again and again; what is in its tensors does not change its time."""
        places = work.past_tokens + 1
        sizes = {"B": 1, "S": work.source_tokens, "C": places}
        binding = self._decoder.io_binding()
        values = {}
        for tensor in self._decoder.get_inputs():
            shape = [sizes[size] if isinstance(size, str) else size for size in tensor.shape]
            if tensor.name == "position":
                array = np.array([work.past_tokens])
            elif "int" in tensor.type:
                array = np.ones(shape, np.int64 if "int64" in tensor.type else np.int32)
            else:
                array = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
            values[tensor.name] = ort.OrtValue.ortvalue_from_numpy(array)
            binding.bind_ortvalue_input(tensor.name, values[tensor.name])
        for tensor in self._decoder.get_outputs():
            past = values.get(tensor.name.replace("present", "past_key_values"))
            if past:
                binding.bind_ortvalue_output(tensor.name, past)
            else:
                binding.bind_output(tensor.name)

        def run() -> Output:
            for _ in range(work.repeats):
                self._decoder.run_with_iobinding(binding)
            return Output()

        return run

    @cached_property
    def _decoder(self) -> ort.InferenceSession:
        return open_decoder(self._pack, self._threads)

    def _products(self, work: Products) -> Job:
        from benchmarks.products import open_products  # noqa: PLC0415 (what the engine does without)

        session = open_products(self._pack, self._threads)
        generator = np.random.default_rng(1)
        feeds = {
            tensor.name: generator.integers(0, 256, (1, 1, tensor.shape[-1]), np.uint8)
            for tensor in session.get_inputs()
        }

        def run() -> Output:
            for _ in range(work.repeats):
                session.run(None, feeds)
            return Output()

        return run

    def _model(self, target_tokens: int | None) -> Model:
        if target_tokens not in self._models:
            pack = exactly(self._pack, target_tokens) if target_tokens else at_most(self._pack, MOST_TOKENS)
            self._models[target_tokens] = Model(pack, self._threads)
        return self._models[target_tokens]
