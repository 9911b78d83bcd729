"""The source of a predictor in C99, without dependencies or allocations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import singledispatchmethod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
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
from kesler.sharing.exports.python_module import account, remark, spelt, wrapped

MOST_SIGNED = 2**63 - 1  # the largest long long
LONGEST_LITERAL = 4095  # in characters, as C99 promises

SOURCE = """\
/*
{account}

The features, in the order in which they were chosen:

{names}
*/
{includes}
{declarations}
{classes}
{intercept}
{weights}
static void add({real} *scores, int column, {real} value)
{{
    for (int i = 0; i < {n_classes}; i++)
        scores[i] += value * weights[column][i];
}}
{tables}
void {name}_scores(const {real} *x, {real} *scores)
{{
    for (int i = 0; i < {n_classes}; i++)
        scores[i] = intercept[i];
{calls}
}}

int {name}_predict(const {real} *x)
{{
    {real} scores[{n_classes}];
    int best = 0;
    {name}_scores(x, scores);
    for (int i = 1; i < {n_classes}; i++)
        if (scores[i] > scores[best])
            best = i;
    return best;
}}
"""

DECLARATIONS = """\
/* The labels of the classes, in the order of their scores. */
extern const {label} {name}_classes[{n_classes}];

/* Write the score of each of the {n_classes} classes of the instance x of {n_features} numbers. */
void {name}_scores(const {real} *x, {real} *scores);

/* Return the number, in {name}_classes, of the class of highest score; of equals the first. */
int {name}_predict(const {real} *x);
"""

HEADER = """\
/*
{account}
*/
#ifndef {guard}
#define {guard}
{includes}
#ifdef __cplusplus
extern "C" {{
#endif

{declarations}
#ifdef __cplusplus
}}
#endif

#endif
"""

COLUMNS = """
static void add_columns(const {real} *x, {real} *scores)
{{
    for (int i = 0; i < {n}; i++)
        add(scores, {first} + i, x[column_index[i]]);
}}
"""

PRODUCTS = """
static void add_products(const {real} *x, {real} *scores)
{{
    for (int i = 0; i < {n}; i++)
        add(scores, {first} + i, x[product_left[i]] * x[product_right[i]]);
}}
"""

STUMPS = """
static void add_stumps(const {real} *x, {real} *scores)
{{
    for (int i = 0; i < {n}; i++)
        if (x[stump_index[i]] < stump_threshold[i])
            add(scores, {first} + i, 1);
}}
"""

PIECES = """
static void add_pieces(const {real} *x, {real} *scores)
{{
    int measured = -1;
    {real} distance = 0;
    for (int i = 0; i < {n}; i++) {{
        const {real} *centre = piece_centre[piece_of[i]];
        const int column = {first} + i * {width};
        if (piece_of[i] != measured) {{
            measured = piece_of[i];
            distance = 0;
            for (int j = 0; j < {n_features}; j++)
                distance += (x[j] - centre[j]) * (x[j] - centre[j]);
        }}
        if (distance < piece_squared_radius[i]) {{
            add(scores, column, 1);
            for (int j = 0; j < {n_features}; j++)
                add(scores, column + 1 + j, x[j] - centre[j]);
        }}
    }}
}}
"""

PADDING = """
    {real} image[{padded_pixels}];
    for (int i = 0; i < {padded_pixels}; i++)
        image[i] = 0;
    for (int i = 0; i < {rows}; i++)
        for (int j = 0; j < {columns}; j++)
            image[(i + {padding}) * {padded_columns} + j + {padding}] = x[i * {columns} + j];"""

# A patch is applied to a whole box of places at once, so that the innermost loop runs along a row
# of the image and can be vectorised.
RESPOND = """
static void respond_{t}(const {real} *image, const {real} *patch, const int *box, {real} *responses)
{{
    for (int row = box[0]; row < box[1]; row++) {{
        {real} *found = responses + row * {n_columns};
        for (int column = box[2]; column < box[3]; column++)
            found[column] = 0;
        for (int i = 0; i < {height}; i++)
            for (int j = 0; j < {width}; j++) {{
                const {real} weight = patch[i * {width} + j];
                const {real} *line = image + (row + i) * {padded_columns} + j;
                for (int column = box[2]; column < box[3]; column++)
                    found[column] += weight * line[column];
            }}
    }}
}}
"""

CONTRAST = """
static {real} contrast_{t}(const {real} *corner)
{{
    {real} mean = 0, sum = 0;
    for (int i = 0; i < {height}; i++)
        for (int j = 0; j < {width}; j++)
            mean += corner[i * {padded_columns} + j];
    mean /= {size};
    for (int i = 0; i < {height}; i++)
        for (int j = 0; j < {width}; j++) {{
            const {real} offset = corner[i * {padded_columns} + j] - mean;
            sum += offset * offset;
        }}
    return {sqrt}(sum / {size});
}}
"""

# Templates are sorted by patch, so that masks of one patch share its responses.
TEMPLATES = """
static void add_templates_{t}(const {real} *x, {real} *scores)
{{
    {real} responses[{n_places}];
    int laid = -1;{image}{contrasts}
    for (int i = 0; i < {n}; i++) {{
        const int patch = template_patch_{t}[i], mask = template_mask_{t}[i];
        {real} best = mask_least_{t}[mask];
        if (patch != laid) {{
            respond_{t}({pixels}, patch_{t}[patch], box_{t}[patch], responses);
            laid = patch;
        }}
        for (int j = mask_begin_{t}[mask]; j < mask_begin_{t}[mask + 1]; j++) {{
            const int place = mask_place_{t}[j];
            const {real} value = responses[place] * {weight};
            if (value > best)
                best = value;
        }}
        add(scores, {first} + i, best);
    }}
}}
"""
CONTRASTS = """
    {real} scales[{n_places}];
    for (int i = {top}; i < {bottom}; i++)
        for (int j = {left}; j < {right}; j++)
            scales[i * {n_columns} + j] =
                1 / (contrast_{t}({pixels} + i * {padded_columns} + j) + {fading});"""


def c_source(predictor: CompactPredictor, name: str, single: bool, header: str | None) -> str:
    """Return the source of ``NAME_predict`` and ``NAME_scores``.

    Parameters
    ----------
    predictor : CompactPredictor
    name : str
        The prefix of the names, an identifier.
    single : bool
        Whether to use float instead of double.
    header : str or None
        The header file to include; None puts the declarations into the source.
    """
    writer = Writer(predictor, single)
    first, bodies, calls = 0, list[str](), list[str]()
    for t, table in enumerate(predictor.tables):
        function = f"add_{type(table).evaluate.__name__}"
        calls.append(f"    {function}{_suffix(table, t)}(x, scores);")
        bodies.append(writer.body(table, t, first))
        first += table.width
    declarations = writer.declarations(name) if header is None else f'#include "{header}"\n'
    needs = [each for each in predictor.tables if isinstance(each, TemplateTable)]
    includes = "#include <float.h>\n" * bool(needs)
    includes += "#include <math.h>\n" * any(each.fading is not None for each in needs)
    return SOURCE.format(
        account="\n".join(account(predictor)),
        names="\n".join(f"    {remark(each)}" for each in predictor.names),
        includes=includes,
        declarations=declarations,
        classes=writer.classes(name),
        intercept=writer.reals("intercept", predictor.intercept),
        weights=writer.reals("weights", predictor.weights),
        tables="".join(bodies),
        calls="\n".join(calls),
        name=name,
        real=writer.real,
        n_classes=len(predictor.classes),
    )


def header_of(path: Path) -> Path:
    """Return the header file of a source; raise if ``#include`` cannot name it.

    Examples
    --------
    >>> header_of(Path("model.c")).name
    'model.h'
    """
    header = path.with_suffix(".h")
    if {*header.name} & {*'"\\\r\n'}:
        raise KeslerError(
            f"{header.name!r} cannot be the name of a header, since #include accepts no quotes, "
            "backslashes or line ends: give the file another name, or omit header"
        )
    return header


def c_header(predictor: CompactPredictor, name: str, single: bool) -> str:
    """Return the header file for `c_source`."""
    declared = Writer(predictor, single).declarations(name)
    return header_source("\n".join(account(predictor)), name, declared)


def header_source(account: str, name: str, declarations: str, includes: str = "") -> str:
    """Return a header with declarations, for C and C++."""
    guard = f"{name.upper()}_H"
    return HEADER.format(account=account, guard=guard, includes=includes, declarations=declarations)


def write_c(
    path: Path, *, header: bool, source: Callable[[str | None], str], declared: Callable[[], str]
) -> None:
    """Write C, and if `header` its declarations to a file beside it.

    Parameters
    ----------
    path : the file.
    header : whether there is a header.
    source : the function that returns the C, given the name of the header or None.
    declared : the function that returns the header.
    """
    from kesler.data.whole_file import write_whole

    beside = header_of(path) if header else None
    write_whole(path, source(None if beside is None else beside.name).encode())
    if beside is not None:
        write_whole(beside, declared().encode())


@dataclass(frozen=True)
class Writer:
    """Generates the parts of a predictor's source in one precision."""

    predictor: CompactPredictor
    single: bool

    @property
    def real(self) -> str:
        """The floating-point type in C."""
        return "float" if self.single else "double"

    def declarations(self, name: str) -> str:
        """Return the public declarations."""
        return DECLARATIONS.format(
            name=name,
            real=self.real,
            label=_label_type(self.predictor.classes),
            n_classes=len(self.predictor.classes),
            n_features=self.predictor.n_features,
        )

    def classes(self, name: str) -> str:
        """Return the table of labels."""
        labels = self.predictor.classes
        kind = _label_type(labels)
        # One in a line: wrapping would break lines within the text of a label.
        spelling = ",\n".join(f"    {_spelt_label(label)}" for label in labels)
        return f"const {kind} {name}_classes[{len(labels)}] = {{\n{spelling}\n}};\n"

    def reals(self, name: str, numbers: npt.NDArray[Any]) -> str:
        """Return a table of numbers; two-dimensional ones are written by rows."""
        return _table(f"{self.real} {name}", numbers.shape, spelt(numbers, self.single))

    def body(self, table: Table, t: int, first: int) -> str:
        """Return the tables and functions for steps of one kind."""
        constants, code, more = self._parts(table, t)
        known = {"real": self.real, "first": first, "t": t, "n_features": self.predictor.n_features}
        return "\n" + "".join(constants) + code.format(**known, **more)

    @singledispatchmethod
    def _parts(self, table: Table, t: int) -> tuple[list[str], str, dict[str, Any]]:
        """Return the constants, the code template, and the values of its fields."""
        raise NotImplementedError(type(table).__name__)

    @_parts.register
    def _(self, table: ColumnTable, t: int) -> tuple[list[str], str, dict[str, Any]]:
        return [_whole("column_index", table.index)], COLUMNS, {"n": table.width}

    @_parts.register
    def _(self, table: ProductTable, t: int) -> tuple[list[str], str, dict[str, Any]]:
        constants = [_whole("product_left", table.left), _whole("product_right", table.right)]
        return constants, PRODUCTS, {"n": table.width}

    @_parts.register
    def _(self, table: StumpTable, t: int) -> tuple[list[str], str, dict[str, Any]]:
        threshold = rounded_up(table.threshold) if self.single else table.threshold
        constants = [_whole("stump_index", table.index), self.reals("stump_threshold", threshold)]
        return constants, STUMPS, {"n": table.width}

    @_parts.register
    def _(self, table: PieceTable, t: int) -> tuple[list[str], str, dict[str, Any]]:
        constants = [
            self.reals("piece_centre", table.centres),
            _whole("piece_of", table.centre),
            self.reals("piece_squared_radius", table.squared_radius),
        ]
        width = 1 + self.predictor.n_features
        return constants, PIECES, {"n": len(table.centre), "width": width}

    @_parts.register
    def _(self, table: TemplateTable, t: int) -> tuple[list[str], str, dict[str, Any]]:
        masks = table.masks.reshape(len(table.masks), -1)
        open_at = masks != 0
        least = np.where(open_at.all(axis=1), -np.inf, 0.0)
        constants = [
            self.reals(f"patch_{t}", table.patches.reshape(len(table.patches), -1)),
            _table(f"int box_{t}", table.boxes.shape, spelt(table.boxes)),
            _whole(f"mask_begin_{t}", np.concatenate([[0], open_at.sum(axis=1).cumsum()])),
            _whole(f"mask_place_{t}", open_at.nonzero()[1]),
            self.reals(f"mask_weight_{t}", masks[open_at]),
            self._least(f"mask_least_{t}", least),
            _whole(f"template_patch_{t}", table.patch),
            _whole(f"template_mask_{t}", table.mask),
        ]
        relative = table.fading is not None
        code = RESPOND + CONTRAST * relative + TEMPLATES
        weight = "mask_weight_{t}[j]" + " * scales[place]" * relative
        for gap, text in (
            ("{image}", PADDING * bool(table.padding)),
            ("{contrasts}", CONTRASTS * relative),
            ("{weight}", weight),
        ):
            code = code.replace(gap, text)
        return constants, code, self._sizes(table)

    def _sizes(self, table: TemplateTable) -> dict[str, Any]:
        """Return the sizes that the code for templates depends on."""
        (rows, columns), (_, height, width) = table.image_shape, table.patches.shape
        padded_rows, padded_columns = rows + 2 * table.padding, columns + 2 * table.padding
        top, bottom, left, right = table.box.tolist()
        return {
            "n": table.width,
            "n_places": table.masks[0].size,
            "n_columns": table.masks.shape[2],
            "padding": table.padding,
            "padded_columns": padded_columns,
            "padded_pixels": padded_rows * padded_columns,
            "pixels": "image" if table.padding else "x",
            "height": height,
            "width": width,
            "size": height * width,
            "rows": rows,
            "columns": columns,
            "sqrt": "sqrtf" if self.single else "sqrt",
            "fading": "".join(spelt(np.array([table.fading or 0.0]), self.single)),
            **{"top": top, "bottom": bottom, "left": left, "right": right},
        }

    def _least(self, name: str, least: npt.NDArray[np.float64]) -> str:
        """Return the lower bound of the response for each mask: 0 if a weight is 0."""
        lowest = "-FLT_MAX" if self.single else "-DBL_MAX"
        numbers = [lowest if number < 0 else "0" for number in least]
        return _table(f"{self.real} {name}", least.shape, numbers)


def rounded_up(threshold: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Round thresholds up to float32, which keeps comparisons with float32 numbers unchanged.

    Examples
    --------
    >>> bool(np.float32(0.1) < 0.1), bool(np.float32(0.1) < rounded_up(np.array([0.1]))[0])
    (False, False)
    >>> between = np.nextafter(np.float64(1.0), 2.0)
    >>> bool(np.float32(1.0) < between), bool(np.float32(1.0) < rounded_up(np.array([between]))[0])
    (True, True)
    """
    nearest = threshold.astype(np.float32)
    return np.where(nearest < threshold, np.nextafter(nearest, np.float32(np.inf)), nearest)


def _suffix(table: Table, t: int) -> str:
    return f"_{t}" if isinstance(table, TemplateTable) else ""


def _whole(name: str, numbers: npt.NDArray[np.integer[Any]]) -> str:
    """Return a table of whole numbers, 0 or more, in the smallest type that can represent them."""
    most = int(numbers.max(initial=0))
    kind = "unsigned char" if most < 1 << 8 else "unsigned short" if most < 1 << 16 else "int"
    return _table(f"{kind} {name}", numbers.shape, spelt(numbers))


def _table(declared: str, shape: tuple[int, ...], numbers: Iterable[str]) -> str:
    numbers = list(numbers)
    size = "".join(f"[{n}]" for n in shape)
    if len(shape) == 1:
        body = wrapped(", ".join(numbers))
    else:
        rows = [numbers[i : i + shape[1]] for i in range(0, len(numbers), shape[1])]
        body = ",\n".join("    {\n" + wrapped(", ".join(row), " " * 8) + "\n    }" for row in rows)
    return f"static const {declared}{size} = {{\n{body}\n}};\n"


def _label_type(labels: list[Label]) -> str:
    if isinstance(labels[0], str):
        return "char *const"
    if isinstance(labels[0], float):
        return "double"
    return "unsigned long long" if max(map(int, labels)) > MOST_SIGNED else "long long"


def _spelt_label(label: Label) -> str:
    if isinstance(label, str):
        return literal_text(label)
    if isinstance(label, float):
        return repr(label)
    if label < -MOST_SIGNED:
        return f"(-{MOST_SIGNED} - 1)"  # C reads -9223372036854775808 as minus a number too large
    return f"{label:d}U" if label > MOST_SIGNED else f"{label:d}"


def literal_text(label: str) -> str:
    """Return the bytes of a label in UTF-8 as a string in C, all but plain characters by number."""
    if "\0" in label:
        raise KeslerError(
            f"the label {label!r:.60} contains the character 0, at which a text in C ends: rename "
            "the class, or export to .py or .onnx"
        )
    stored = encoded(label)
    if len(stored) > LONGEST_LITERAL:
        characters = wrapped(", ".join(f"'\\{byte:03o}'" for byte in stored), " " * 8)
        return f"(const char[]){{\n{characters}, 0}}"
    plain = (
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in stored
    )
    return f'"{"".join(plain)}"'
