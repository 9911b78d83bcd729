// Multiclass PA-I with one hypothesis per class, optimized for speed: the reference of the kernels.
//
// Weights are float32 by feature, (feature, class). Scores are calibrated as probabilities on each
// row, as in kesler.calibration, or not. Compile with -ffp-contract=off -fopenmp-simd.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

constexpr int64_t kLanes = 16;     // float32 numbers in a cache line
constexpr int64_t kMostLines = 8;  // the hardware prefetches longer runs by itself

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

// e^t for -80 <= t <= 0 in float (Cephes), so that eight are computed at a time.
inline float exponential(float t) {
    const float n = std::floor(t * 1.44269504f + 0.5f);
    const float f = t - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * f + 1.3981999507e-3f;
    p = p * f + 8.3334519073e-3f;
    p = p * f + 4.1665795894e-2f;
    p = p * f + 1.6666665459e-1f;
    p = p * f + 5.0000001201e-1f;
    p = p * f * f + f + 1.0f;
    const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

struct Calibration {
    double inverse, information, lapses, targets;
};

// One Newton step of the inverse temperature, and of the share of targets independent of scores.
void calibrate(Calibration& state, const float* __restrict__ scores, int64_t k, int64_t best,
               int64_t y) {
    const double top = scores[best];
    double inverse = state.inverse, total = 0, first = 0, second = 0;
    if (state.information == 0) {
        const double spread = top - *std::min_element(scores, scores + k);
        inverse = spread > 0 && spread < HUGE_VAL ? 2 / spread : 0;
    }
#pragma omp simd reduction(+ : total, first, second)
    for (int64_t r = 0; r < k; ++r) {
        const double z = std::max(inverse * (scores[r] - top), -80.0);
        const double share = exponential(static_cast<float>(z));
        total += share;
        first += share * z;
        second += share * z * z;
    }
    if (k < 2 || y >= k || !(inverse > 0) || !std::isfinite(top)) return;
    if (state.information == 0) state.inverse = inverse, state.information = 1;
    const double lapse = state.lapses / state.targets, mean = first / total;
    const double own = std::max(inverse * (scores[y] - top), -80.0);
    const double chance = (1 - lapse) * exponential(static_cast<float>(own)) / total + lapse / k;
    const double lapsed = lapse / k / chance, counts = std::max(0.01, 1 - lapsed);
    const double variance = std::max(0.0, second / total - mean * mean);
    state.information = std::max(1e-30, 0.99 * state.information + counts * variance);
    const double step = std::clamp(counts * (mean - own) / state.information, -1.0, 1.0);
    state.inverse = std::clamp(state.inverse * std::exp(-step), 1e-60, 1e60);
    state.lapses = 0.99 * state.lapses + lapsed;
    state.targets = 0.99 * state.targets + 1;
}

}  // namespace

// One pass over the rows; classes are encoded in the order of first appearance. predictions[t] is
// the prediction of row t before it is learnt, -1 if no class is known. Null for no calibration.
extern "C" void pa1(const int64_t* starts, const int32_t* words, const float* values,
                    const int32_t* classes, int64_t n_rows, float* weights, int64_t stride,
                    double C, float* scores, int32_t* predictions, Calibration* calibration) {
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
        if (calibration && known) calibrate(*calibration, scores, known, best, y);
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
