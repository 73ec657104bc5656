/* What is on trial: bits in, bits out. Put yours here. */

#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint64_t implementation(const uint64_t *in);

static float f32(uint64_t bits) {
    uint32_t word = (uint32_t)bits;
    float x;
    memcpy(&x, &word, sizeof x);
    return x;
}

static uint64_t bits_of(float x) {
    uint32_t word;
    memcpy(&word, &x, sizeof word);
    return word;
}

static uint64_t cast(const uint64_t *in) {
    return isnan(f32(in[0])) ? 0x7fc0 : (in[0] + 0x7fff + (in[0] >> 16 & 1)) >> 16;
}

static uint64_t cast_truncating(const uint64_t *in) {
    return in[0] >> 16;
}

static uint64_t log1p_by_double(const uint64_t *in) {
    return bits_of((float)log1p(f32(in[0])));
}

static uint64_t log1p_naive(const uint64_t *in) {
    float sum = 1 + f32(in[0]);
    return bits_of((float)log(sum));
}

static const struct {
    const char *file;
    implementation *right, *wrong;
} MINE[] = {
    {"casts/cast-f32-bf16", cast, cast_truncating},
    {"functions/log1p-f32", log1p_by_double, log1p_naive},
};
