"""Model files: their bytes are those that safetensors writes, without copies of the arrays."""

import json
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save as written

from kesler.data import model_file
from kesler.errors import KeslerError

SHAPES = [(), (0,), (5,), (3, 7), (2, 0, 3), (4, 1, 2)]


def arrays_of(seed):
    """Arrays of all types and some shapes, in any order, not all of them contiguous."""
    random = np.random.default_rng(seed)
    kinds = random.permutation([*model_file.TYPES] * 2)
    found = {}
    for number, kind in enumerate(kinds):
        shape = SHAPES[random.integers(len(SHAPES))]
        array = random.integers(0, 100, shape).astype(kind)
        found[f"{random.choice(list('abä'))}.{number}"] = array.T if number % 3 else array
    return found


@pytest.mark.parametrize("seed", range(8))
def test_the_bytes_are_those_of_safetensors(seed):
    arrays = arrays_of(seed)
    contents = model_file.to_bytes(arrays, {"names": ["a", "ü"] * seed})
    length = int.from_bytes(contents[:8], "little")
    metadata = json.loads(contents[8 : 8 + length])["__metadata__"]
    text = json.dumps({"names": ["a", "ü"] * seed}, separators=(",", ":")).encode()
    given = {**arrays, "metadata": np.frombuffer(text, dtype=np.uint8)}
    given = {name: np.array(array, order="C") for name, array in given.items()}
    assert contents == written(given, metadata=metadata)
    found, _ = model_file.from_bytes(contents)
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_what_is_written_takes_no_memory_of_its_own(tmp_path):
    arrays = {"weights": np.ones((1_000, 2_000), dtype=np.float32), "sums": np.ones(200_000)}
    size = sum(array.nbytes for array in arrays.values())
    model_file.save(tmp_path / "before", {"a": np.ones(1)}, {})  # what is imported
    tracemalloc.start()
    try:
        model_file.save(tmp_path / "model", arrays, {"names": ["a"]})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "model").stat().st_size > size
    assert peak < size / 20


def test_metadata_that_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(KeslerError, match="what JSON can hold"):
        model_file.save(tmp_path / "model", {}, {"a": {1, 2}})
    assert not list(tmp_path.iterdir())
