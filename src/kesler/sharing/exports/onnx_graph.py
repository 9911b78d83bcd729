"""The ONNX graph of a predictor, with standard operators."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatchmethod
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

from kesler.sharing.exports.c_source import rounded_up
from kesler.sharing.exports.predictor import (
    ColumnTable,
    CompactPredictor,
    Label,
    PieceTable,
    ProductTable,
    StumpTable,
    Table,
    TemplateTable,
    encoded,
)
from kesler.sharing.exports.python_module import account

OPSET = 17
IR_VERSION = 8  # the version of that operator set: older runtimes refuse newer versions


def onnx_model(predictor: CompactPredictor, name: str, single: bool) -> ModelProto:
    """Return a model with input ``X``, (n_rows, n_features), and outputs ``label`` and ``scores``.

    Parameters
    ----------
    predictor : CompactPredictor
    name : str
        The name of the graph.
    single : bool
        Whether X and scores have single precision. Otherwise scores have double precision, and X
        that of the rows of `fit`. Convolutions always have single precision, since runtimes support
        no other.
    """
    graph = Graph(np.dtype(np.float32 if single else np.float64))
    of_rows = graph.kind if single else _kind(predictor.dtype)
    if of_rows != graph.kind:
        graph.rows = graph.add("Cast", "X", to=graph.kind)
    parts = [graph.part(table) for table in predictor.tables]
    values = graph.add("Concat", *parts, axis=1)
    products = graph.add("MatMul", values, graph.reals(predictor.weights))
    graph.add("Add", products, graph.reals(predictor.intercept), output="scores")
    best = graph.add("ArgMax", "scores", axis=1, keepdims=0)
    graph.add("Gather", graph.constant(_labels(predictor.classes)), best, output="label")

    of_labels = helper.np_dtype_to_tensor_dtype(_labels(predictor.classes).dtype)
    outputs = [
        helper.make_tensor_value_info("label", of_labels, ["n_rows"]),
        helper.make_tensor_value_info("scores", graph.kind, ["n_rows", len(predictor.classes)]),
    ]
    inputs = [helper.make_tensor_value_info("X", of_rows, ["n_rows", predictor.n_features])]
    made = helper.make_graph(graph.nodes, name, inputs, outputs, graph.constants)
    model = helper.make_model(
        made,
        ir_version=IR_VERSION,
        opset_imports=[helper.make_opsetid("", OPSET)],
        producer_name="kesler",
        doc_string="\n".join([*account(predictor), *predictor.names]),
    )
    checker.check_model(model)
    return model


def _labels(classes: list[Label]) -> npt.NDArray[Any]:
    if isinstance(classes[0], str):
        # Not as an array of text, which drops the characters 0 at the end of a label.
        return np.array([encoded(str(label)) for label in classes], dtype=object)
    return np.array(classes)


def _kind(dtype: np.dtype[Any]) -> int:
    return int(helper.np_dtype_to_tensor_dtype(dtype))


@dataclass
class Graph:
    """The nodes and constants of a graph."""

    dtype: np.dtype[Any]
    rows: str = "X"
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    @property
    def kind(self) -> int:
        """The ONNX type of scores."""
        return _kind(self.dtype)

    def add(self, operator: str, *inputs: str, output: str | None = None, **options: Any) -> str:
        """Add a node; return the name of its output."""
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], **options))
        return output

    def constant(self, array: Any) -> str:
        """Add a constant; return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def reals(self, array: Any) -> str:
        """Add a constant in the precision of the graph."""
        return self.constant(np.asarray(array, dtype=self.dtype))

    def features(self, index: npt.NDArray[np.int64]) -> str:
        """Take some columns of the rows."""
        return self.add("Gather", self.rows, self.constant(index), axis=1)

    @singledispatchmethod
    def part(self, table: Table) -> str:
        """Add the columns of a table; return their name."""
        raise NotImplementedError(type(table).__name__)

    @part.register
    def _(self, table: ColumnTable) -> str:
        return self.features(table.index)

    @part.register
    def _(self, table: ProductTable) -> str:
        return self.add("Mul", self.features(table.left), self.features(table.right))

    @part.register
    def _(self, table: StumpTable) -> str:
        single = self.dtype == np.float32
        threshold = rounded_up(table.threshold) if single else table.threshold
        below = self.add("Less", self.features(table.index), self.reals(threshold))
        return self.add("Cast", below, to=self.kind)

    @part.register
    def _(self, table: PieceTable) -> str:
        """Add the columns of pieces; offsets have the shape (n_rows, n_centres, n_features)."""
        rows = self.add("Unsqueeze", self.rows, self.constant(np.array([1])))
        offsets = self.add("Sub", rows, self.reals(table.centres))
        squares = self.add("Mul", offsets, offsets)
        distances = self.add("ReduceSum", squares, self.constant(np.array([2])), keepdims=0)
        of_piece = self.constant(table.centre)
        distances = self.add("Gather", distances, of_piece, axis=1)
        near = self.add("Less", distances, self.reals(table.squared_radius))
        near = self.add("Cast", near, to=self.kind)
        near = self.add("Unsqueeze", near, self.constant(np.array([2])))
        offsets = self.add("Gather", offsets, of_piece, axis=1)
        values = self.add("Concat", near, self.add("Mul", near, offsets), axis=2)
        width = self.constant(np.array([-1, table.width]))
        return self.add("Reshape", values, width)

    @part.register
    def _(self, table: TemplateTable) -> str:
        n_patches, height, width = table.patches.shape
        shape = self.constant(np.array([-1, 1, *table.image_shape]))
        images = self.add("Cast", self.add("Reshape", self.rows, shape), to=TensorProto.FLOAT)
        pads = [table.padding] * 4
        patches = table.patches.reshape(n_patches, 1, height, width)
        responses = self.add("Conv", images, self._single(patches), pads=pads)
        if table.fading is not None:
            scales = self._contrast(images, height, width, pads, table.fading)
            responses = self.add("Div", responses, scales)
        responses = self.add("Gather", responses, self.constant(table.patch), axis=1)
        weighted = self.add("Mul", responses, self._single(table.masks[table.mask]))
        largest = self.add("ReduceMax", weighted, axes=[2, 3], keepdims=0)
        return self.add("Cast", largest, to=self.kind)

    def _contrast(
        self, images: str, height: int, width: int, pads: list[int], fading: float
    ) -> str:
        """Add the standard deviation of the pixels of each window, plus the fading."""
        ones, size = self._single(np.ones((1, 1, height, width))), height * width
        sums = self.add("Conv", images, ones, pads=pads)
        squares = self.add("Conv", self.add("Mul", images, images), ones, pads=pads)
        means = self.add("Div", sums, self._single(size))
        mean_squares = self.add("Div", squares, self._single(size))
        variance = self.add("Sub", mean_squares, self.add("Mul", means, means))
        variance = self.add("Max", variance, self._single(0))
        return self.add("Add", self.add("Sqrt", variance), self._single(fading))

    def _single(self, array: Any) -> str:
        return self.constant(np.asarray(array, dtype=np.float32))
