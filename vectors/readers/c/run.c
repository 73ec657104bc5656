/* Golden vectors in C11 without a library: `./run [--wrong] FILE.json ...` says what is wrong.
 * cc -std=c11 -O2 -o run run.c -lm */

#include "json.h"
#include "mine.h"
#include <inttypes.h>

enum { ALLOWED, FORBIDDEN, UNSPECIFIED };

static int within(const node *range, uint64_t got) {
    for (; range; range = range->next)
        if (bits(range->first) <= got && got <= bits(range->first->next)) return 1;
    return 0;
}

/* Distance from the exact result in units of 2^-32 ulp, at most 2^31 ulp; -1 if there is none. For formats of up to 32
 * bits with IEEE's infinities. */
static int64_t error(const node *exact, const node *format, uint64_t got) {
    int64_t fraction_bits = integer(get(format, "fraction_bits"));
    int64_t all_ones = (1 << integer(get(format, "exponent_bits"))) - 1;
    int64_t field = (int64_t)(got >> fraction_bits) & all_ones;
    if (!exact || strcmp(text(get(exact, "kind")), "number") || field == all_ones) return -1;
    int64_t significand = (int64_t)(got & ((1u << fraction_bits) - 1)) | (int64_t)(field > 0) << fraction_bits;
    int64_t exponent = (field ? field : 1) - integer(get(format, "bias")) - fraction_bits;
    int64_t shift = exponent - integer(get(exact, "exponent"));
    if (shift > 38) return INT64_MAX;
    int64_t scaled = shift > 0 ? significand << shift : shift > -63 ? significand >> -shift : 0;
    int negative = text(get(exact, "negative"))[0] == 't';
    int64_t truth = (int64_t)bits(get(exact, "significand"));
    return (int)(got >> (integer(get(format, "width")) - 1)) == negative ? llabs(scaled - truth) : scaled + truth;
}

static void print_off(const char *most, int64_t distance) {
    if (distance < 0) return;
    printf(", %s%" PRId64 ".%03" PRId64 " ulp off", most, distance >> 32, (distance & 0xffffffff) * 1000 >> 32);
}

static void print_failure(const node *data, const node *one, int digits, uint64_t got, int64_t distance) {
    printf("%s", text(get(one, "id")));
    for (const node *n = items(one, "inputs"); n; n = n->next) printf(" %s", text(n));
    printf(" gives 0x%0*" PRIx64, digits, got);
    print_off("", distance);
    printf(", allowed:");
    for (const node *range = items(one, "allowed"); range; range = range->next) {
        printf(" %s", text(range->first));
        if (bits(range->first) != bits(range->first->next)) printf("..%s", text(range->first->next));
    }
    printf("\n");
    for (const node *n = items(one, "flags"); n; n = n->next)
        printf("    %s\n", text(get(get(data, "flags"), text(n))));
    for (const node *n = items(one, "kills"); n; n = n->next) printf("    suspect %s\n", text(n));
    if (get(one, "note")) printf("    %s\n", text(get(one, "note")));
}

/* Runs all cases of a file; prints the first five failures and a summary; adds to the total. */
static void judge(const node *data, implementation *mine, int *total) {
    const node *format = get(get(data, "formats"), text(get(get(data, "operation"), "result")));
    int digits = ((int)integer(get(format, "width")) + 3) / 4, count[3] = {0};
    int64_t worst = -1;
    for (const node *group = items(data, "groups"); group; group = group->next)
        for (const node *one = items(group, "cases"); one; one = one->next) {
            uint64_t in[3] = {0}, *next = in;
            for (const node *n = items(one, "inputs"); n && next < in + 3; n = n->next) *next++ = bits(n);
            uint64_t got = mine(in);
            int64_t distance = error(get(one, "exact"), format, got);
            int verdict = within(items(one, "unspecified"), got) ? UNSPECIFIED : FORBIDDEN;
            if (within(items(one, "allowed"), got)) verdict = ALLOWED;
            if (distance > worst) worst = distance;
            total[verdict]++;
            if (++count[verdict] <= 5 && verdict == FORBIDDEN) print_failure(data, one, digits, got, distance);
        }
    const char *name = text(get(data, "name"));
    printf("%s: %d allowed, %d forbidden, %d unspecified", name, count[ALLOWED], count[FORBIDDEN], count[UNSPECIFIED]);
    print_off("at most ", worst);
    printf("\n");
}

int main(int argc, char **argv) {
    struct { const char *kind; int cases; } not_run[17] = {{NULL, 0}}; /* the format has 7 kinds */
    int total[3] = {0}, left = 0, wrong = argc > 1 && !strcmp(argv[1], "--wrong");
    for (int i = 1 + wrong; i < argc; i++) {
        const node *data = load(argv[i]);
        int cases = 0, k = 0;
        for (const node *group = items(data, "groups"); group; group = group->next)
            for (const node *one = items(group, "cases"); one; one = one->next) cases++;
        if (strcmp(text(get(data, "format")), "halfulp-vectors-1") || integer(get(data, "count")) != cases)
            fail("no halfulp-vectors-1 file, or not all of it");
        implementation *mine = NULL;
        for (size_t m = 0; m < sizeof MINE / sizeof *MINE; m++)
            if (!strcmp(MINE[m].file, text(get(data, "name")))) mine = wrong ? MINE[m].wrong : MINE[m].right;
        if (mine) { judge(data, mine, total); continue; }
        while (k < 15 && not_run[k].kind && strcmp(not_run[k].kind, text(get(data, "kind")))) k++;
        not_run[k].kind = text(get(data, "kind"));
        not_run[k].cases += cases;
        left += cases;
    }
    for (int k = 0; not_run[k].kind; k++) printf("not run: %d cases of kind %s\n", not_run[k].cases, not_run[k].kind);
    printf("all: %d allowed, %d forbidden, %d unspecified, %d not run\n", total[0], total[1], total[2], left);
    return total[ALLOWED] && !total[FORBIDDEN] ? 0 : 1;
}
