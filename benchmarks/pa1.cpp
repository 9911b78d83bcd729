// Multiclass PA-I, one hypothesis a class, written for speed: what the kernels are measured by.
//
// Weights are float32 by feature, (feature, class), and every sum is taken in the order in which
// kesler.compiled takes it, so that both make the same mistakes. Compile with -ffp-contract=off.

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace {

constexpr int64_t kLanes = 16;     // float32 numbers in a cache line
constexpr int64_t kMostLines = 8;  // beyond so many in a row the machine fetches by itself

void fetch(const float* weights, int64_t stride, const int32_t* words, int64_t n, int64_t width) {
    const int64_t last = std::min(width, kMostLines * kLanes);
    for (int64_t j = 0; j < n; ++j)
        for (int64_t column = 0; column < last; column += kLanes)
            __builtin_prefetch(weights + words[j] * stride + column, 0, 2);
}

void score(const float* __restrict__ weights, int64_t stride, const int32_t* words,
           const float* values, int64_t n, int64_t width, float* __restrict__ scores) {
    std::fill(scores, scores + width, 0.0f);
    int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        const float *a = weights + words[j] * stride, *b = weights + words[j + 1] * stride;
        const float *c = weights + words[j + 2] * stride, *d = weights + words[j + 3] * stride;
        const float p = values[j], q = values[j + 1], s = values[j + 2], t = values[j + 3];
        for (int64_t r = 0; r < width; ++r)
            scores[r] += (p * a[r] + q * b[r]) + (s * c[r] + t * d[r]);
    }
    for (; j < n; ++j) {
        const float* a = weights + words[j] * stride;
        for (int64_t r = 0; r < width; ++r) scores[r] += values[j] * a[r];
    }
}

}  // namespace

// One pass over the rows; classes are numbered as they appear. predictions[t] is that of row t
// before its class is heard, -1 if none is known.
extern "C" void pa1(const int64_t* starts, const int32_t* words, const float* values,
                    const int32_t* classes, int64_t n_rows, float* weights, int64_t stride,
                    double C, float* scores, int32_t* predictions) {
    int64_t known = 0;
    for (int64_t t = 0; t < n_rows; ++t) {
        const int32_t* row = words + starts[t];
        const float* x = values + starts[t];
        const int64_t n = starts[t + 1] - starts[t];
        const int64_t width = std::min(stride, (known + kLanes - 1) / kLanes * kLanes);
        if (t + 1 < n_rows)
            fetch(weights, stride, words + starts[t + 1], starts[t + 2] - starts[t + 1], width);
        score(weights, stride, row, x, n, width, scores);
        const int64_t y = classes[t];
        int64_t best = known ? 0 : -1, rival = -1;
        for (int64_t r = 1; r < known; ++r)
            if (scores[r] > scores[best]) best = r;
        predictions[t] = static_cast<int32_t>(best);
        if (y >= known) {
            known = y + 1;
            continue;
        }
        rival = best;
        if (rival == y) {
            rival = -1;
            for (int64_t r = 0; r < known; ++r)
                if (r != y && (rival < 0 || scores[r] > scores[rival])) rival = r;
        }
        if (rival < 0) continue;
        const double loss =
            1.0 - (static_cast<double>(scores[y]) - static_cast<double>(scores[rival]));
        if (loss <= 0) continue;
        double length = 0;
        for (int64_t j = 0; j < n; ++j) length += static_cast<double>(x[j]) * x[j];
        const double norm = 2 * length;
        const float step = static_cast<float>(norm > 0 ? std::min(C, loss / norm) : C);
        for (int64_t j = 0; j < n; ++j) {
            weights[row[j] * stride + y] += step * x[j];
            weights[row[j] * stride + rival] += -step * x[j];
        }
    }
}
