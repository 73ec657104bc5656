/* A backend behind a pipe, in one file of C99: it speaks the JSON-lines protocol of halfulp (docs/reference/pipe-protocol.md)
 * and evaluates elementwise kernels on all 16 scalar formats.
 *
 *     cc -std=c99 -O2 -o pipe_runner examples/pipe_runner.c -lm
 *     pytest --pyargs halfulp.properties -p halfulp.certify.plugin --backend="pipe:./pipe_runner"
 *
 * Offered: casts, bitcasts, integer arithmetic, + - * / sqrt neg abs floor, comparisons, select, maximum and minimum.
 * Not offered, and answered "unsupported": saturating casts, every other operation, source programs.
 *
 * How results are computed:
 *   - every value is a bit pattern in a uint64_t;
 *   - a number is taken apart into sign, integer significand and exponent, and put together by `compose`, which rounds
 *     once, to nearest even: this is all that a cast needs;
 *   - f32 and f64 arithmetic is the machine's; f16, bf16 and the 8-bit floats (at most 11 bits of precision) compute in
 *     double, whose 53 bits are at least 2 * 11 + 2, so rounding twice gives what rounding once would. */

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if FLT_EVAL_METHOD != 0
#error "float and double must be computed in their own precision"
#endif

static void *allocate(size_t size) {
    void *memory = calloc(1, size ? size : 1);
    if (!memory) {
        fprintf(stderr, "pipe_runner: out of memory\n");
        exit(1);
    }
    return memory;
}

static void *grow(void *memory, size_t size) {
    memory = realloc(memory, size);
    if (!memory) {
        fprintf(stderr, "pipe_runner: out of memory\n");
        exit(1);
    }
    return memory;
}

/* ---- JSON: a value is parsed into a tree. Strings stay in the line; the protocol's own texts need no escapes. ---- */

typedef enum { J_NULL, J_TRUE, J_FALSE, J_NUMBER, J_STRING, J_ARRAY, J_OBJECT } JsonKind;

typedef struct Json {
    JsonKind kind;
    const char *text; /* string or number, in the line */
    size_t length;
    const char *key; /* in an object */
    size_t key_length;
    struct Json *child, *next;
} Json;

typedef struct {
    const char *at;
    bool failed;
} Parser;

static void skip_space(Parser *p) {
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || *p->at == '\n')
        p->at++;
}

static void json_free(Json *json) {
    while (json) {
        Json *next = json->next;
        json_free(json->child);
        free(json);
        json = next;
    }
}

static bool parse_string(Parser *p, const char **text, size_t *length) {
    if (*p->at != '"')
        return false;
    *text = ++p->at;
    while (*p->at && *p->at != '"')
        p->at += (p->at[0] == '\\' && p->at[1]) ? 2 : 1;
    *length = (size_t)(p->at - *text);
    if (*p->at != '"')
        return false;
    p->at++;
    return true;
}

static Json *parse_value(Parser *p, int depth) {
    Json *json = allocate(sizeof *json);
    skip_space(p);
    if (depth > 64) {
        p->failed = true;
    } else if (*p->at == '{' || *p->at == '[') {
        char close = *p->at == '{' ? '}' : ']';
        json->kind = *p->at == '{' ? J_OBJECT : J_ARRAY;
        Json **last = &json->child;
        p->at++;
        skip_space(p);
        if (*p->at == close) {
            p->at++;
            return json;
        }
        while (!p->failed) {
            const char *key = NULL;
            size_t key_length = 0;
            skip_space(p);
            if (json->kind == J_OBJECT) {
                if (!parse_string(p, &key, &key_length))
                    break;
                skip_space(p);
                if (*p->at++ != ':')
                    break;
            }
            *last = parse_value(p, depth + 1);
            (*last)->key = key;
            (*last)->key_length = key_length;
            last = &(*last)->next;
            skip_space(p);
            if (*p->at == close) {
                p->at++;
                return json;
            }
            if (*p->at++ != ',')
                break;
        }
        p->failed = true;
    } else if (*p->at == '"') {
        json->kind = J_STRING;
        p->failed |= !parse_string(p, &json->text, &json->length);
    } else if (*p->at == '-' || isdigit((unsigned char)*p->at)) {
        json->kind = J_NUMBER;
        json->text = p->at;
        while (*p->at && strchr("+-.eE0123456789", *p->at))
            p->at++;
        json->length = (size_t)(p->at - json->text);
    } else if (!strncmp(p->at, "true", 4)) {
        json->kind = J_TRUE;
        p->at += 4;
    } else if (!strncmp(p->at, "false", 5)) {
        json->kind = J_FALSE;
        p->at += 5;
    } else if (!strncmp(p->at, "null", 4)) {
        json->kind = J_NULL;
        p->at += 4;
    } else {
        p->failed = true;
    }
    return json;
}

static const Json *member(const Json *object, const char *key) {
    size_t length = strlen(key);
    if (object && object->kind == J_OBJECT)
        for (const Json *item = object->child; item; item = item->next)
            if (item->key_length == length && !memcmp(item->key, key, length))
                return item;
    return NULL;
}

static bool is_text(const Json *json, const char *text) {
    return json && json->kind == J_STRING && json->length == strlen(text) && !memcmp(json->text, text, json->length);
}

static bool integer(const Json *json, long long *value) {
    char *end;
    if (!json || json->kind != J_NUMBER)
        return false;
    *value = strtoll(json->text, &end, 10);
    return end == json->text + json->length;
}

static size_t count(const Json *array) {
    size_t n = 0;
    if (array && array->kind == J_ARRAY)
        for (const Json *item = array->child; item; item = item->next)
            n++;
    return n;
}

/* ---- Formats ---- */

typedef enum { BOOL, INT, FLOAT } Kind;

typedef struct {
    const char *name;
    Kind kind;
    int width;
    bool is_signed;
    int fraction, bias; /* of a float */
    bool infinity;
} Format;

static const Format formats[] = {
    {"bool", BOOL, 1, false, 0, 0, false},       {"index", INT, 64, true, 0, 0, false},
    {"i8", INT, 8, true, 0, 0, false},           {"i16", INT, 16, true, 0, 0, false},
    {"i32", INT, 32, true, 0, 0, false},         {"i64", INT, 64, true, 0, 0, false},
    {"u8", INT, 8, false, 0, 0, false},          {"u16", INT, 16, false, 0, 0, false},
    {"u32", INT, 32, false, 0, 0, false},        {"u64", INT, 64, false, 0, 0, false},
    {"f16", FLOAT, 16, true, 10, 15, true},      {"bf16", FLOAT, 16, true, 7, 127, true},
    {"f32", FLOAT, 32, true, 23, 127, true},     {"f64", FLOAT, 64, true, 52, 1023, true},
    {"f8e4m3fn", FLOAT, 8, true, 3, 7, false},   {"f8e5m2", FLOAT, 8, true, 2, 15, true},
};

static const Format *find_format(const Json *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (is_text(name, formats[i].name))
            return &formats[i];
    return NULL;
}

static const Format *const boolean = &formats[0];

static int storage_bytes(const Format *f) { return f->width <= 8 ? 1 : f->width / 8; }

static uint64_t low_bits(int width) { return width >= 64 ? UINT64_MAX : ((uint64_t)1 << width) - 1; }

static uint64_t sign_bit(const Format *f) { return (uint64_t)1 << (f->width - 1); }

/* The code of +infinity, or what would be it. */
static uint64_t top_exponent(const Format *f) {
    return (low_bits(f->width - 1) >> f->fraction) << f->fraction;
}

static uint64_t max_finite(const Format *f) {
    return f->infinity ? top_exponent(f) - 1 : low_bits(f->width - 1) - 1;
}

static uint64_t nan_code(const Format *f) {
    return f->infinity ? top_exponent(f) | (uint64_t)1 << (f->fraction - 1) : low_bits(f->width - 1);
}

static bool is_nan(const Format *f, uint64_t code) { return (code & low_bits(f->width - 1)) > max_finite(f) + f->infinity; }

static bool is_infinite(const Format *f, uint64_t code) {
    return f->infinity && (code & low_bits(f->width - 1)) == top_exponent(f);
}

/* The value of an integer code, sign-extended to 64 bits. */
static int64_t extended(const Format *f, uint64_t code) {
    if (f->is_signed && (code & sign_bit(f)))
        code |= ~low_bits(f->width);
    int64_t value;
    memcpy(&value, &code, sizeof value);
    return value;
}

/* ---- Numbers: (-1)^negative * significand * 2^exponent ---- */

typedef struct {
    bool negative;
    uint64_t significand;
    int exponent;
} Number;

/* A finite code of any format. */
static Number take_apart(const Format *f, uint64_t code) {
    Number x = {false, code, 0};
    if (f->kind == FLOAT) {
        uint64_t magnitude = code & low_bits(f->width - 1);
        int field = (int)(magnitude >> f->fraction);
        x.negative = (code & sign_bit(f)) != 0;
        x.significand = (magnitude & low_bits(f->fraction)) | (field ? (uint64_t)1 << f->fraction : 0);
        x.exponent = (field ? field : 1) - f->bias - f->fraction;
    } else if (f->is_signed && (code & sign_bit(f))) {
        x.negative = true;
        x.significand = 0 - (code | ~low_bits(f->width));
    }
    return x;
}

/* Round a number once, to nearest even. Overflow gives infinity, or NaN where there is none. */
static uint64_t compose(const Format *f, Number x) {
    uint64_t sign = x.negative ? sign_bit(f) : 0;
    if (!x.significand)
        return sign;
    int top = 63;
    while (!(x.significand >> top))
        top--;
    int lowest = 1 - f->bias; /* exponent of the smallest normal number */
    int exponent = x.exponent + top > lowest ? x.exponent + top : lowest;
    int shift = exponent - f->fraction - x.exponent; /* bits of the significand below the last place */
    if (exponent > 2 * f->bias + 2)
        return sign | (f->infinity ? top_exponent(f) : nan_code(f));
    uint64_t kept = 0;
    if (shift <= 0) {
        kept = x.significand << -shift;
    } else if (shift <= 64) {
        uint64_t rest = x.significand & low_bits(shift), half = (uint64_t)1 << (shift - 1);
        kept = shift < 64 ? x.significand >> shift : 0;
        kept += rest > half || (rest == half && (kept & 1));
    }
    /* A carry out of the fraction steps into the next exponent, and out of the subnormals into the normal numbers. */
    uint64_t code = ((uint64_t)(exponent - lowest) << f->fraction) + kept;
    if (code > max_finite(f))
        code = f->infinity ? top_exponent(f) : nan_code(f);
    return sign | code;
}

static double to_double(const Format *f, uint64_t code) {
    static const Format *const f64 = &formats[13];
    double value;
    uint64_t wide = code;
    if (f != f64) {
        uint64_t sign = code & sign_bit(f) ? sign_bit(f64) : 0;
        if (is_nan(f, code))
            wide = nan_code(f64);
        else if (is_infinite(f, code))
            wide = sign | top_exponent(f64);
        else
            wide = compose(f64, take_apart(f, code));
    }
    memcpy(&value, &wide, sizeof value);
    return value;
}

static uint64_t cast(const Format *from, const Format *to, uint64_t code) {
    bool special = from->kind == FLOAT && (is_nan(from, code) || is_infinite(from, code));
    if (to->kind == BOOL)
        return special || take_apart(from, code).significand != 0;
    if (to->kind == FLOAT) {
        if (!special)
            return compose(to, take_apart(from, code));
        if (is_nan(from, code))
            return nan_code(to);
        return (code & sign_bit(from) ? sign_bit(to) : 0) | (to->infinity ? top_exponent(to) : nan_code(to));
    }
    if (from->kind != FLOAT)
        return (uint64_t)extended(from, code) & low_bits(to->width);
    /* Float to integer: toward zero. What does not fit is the caller's fault and gives 0. */
    if (special)
        return 0;
    Number x = take_apart(from, code);
    uint64_t magnitude = 0;
    if (x.exponent <= 0)
        magnitude = x.exponent > -64 ? x.significand >> -x.exponent : 0;
    else if (x.exponent < 64 && x.significand <= UINT64_MAX >> x.exponent)
        magnitude = x.significand << x.exponent;
    else
        return 0;
    uint64_t limit = low_bits(to->width - to->is_signed);
    if (x.negative)
        limit = to->is_signed ? limit + 1 : 0;
    if (magnitude > limit)
        return 0;
    return (x.negative ? 0 - magnitude : magnitude) & low_bits(to->width);
}

static uint64_t from_double(const Format *f, double value) {
    uint64_t code;
    memcpy(&code, &value, sizeof code);
    return cast(&formats[13], f, code);
}

/* ---- Operations ---- */

typedef enum {
    CAST, BITCAST,
    ADD, SUB, MUL, DIV, FLOORDIV, MOD, SHL, SHR, AND, OR, XOR, NOT, NEG, ABS, SQRT, FLOOR,
    EQ, NE, LT, LE, GT, GE, MAXIMUM, MINIMUM, MAXIMUM_NUM, MINIMUM_NUM, SELECT
} Op;

enum { ON_BOOL = 1, ON_INT = 2, ON_FLOAT = 4 };

static const struct {
    const char *name;
    Op op;
    int arity;
    int kinds; /* of the operands that have to be of one dtype */
} operations[] = {
    {"cast", CAST, 1, 7},         {"bitcast", BITCAST, 1, 7},   {"add", ADD, 2, 6},
    {"sub", SUB, 2, 6},           {"mul", MUL, 2, 6},           {"div", DIV, 2, ON_FLOAT},
    {"floordiv", FLOORDIV, 2, 2}, {"mod", MOD, 2, ON_INT},      {"shl", SHL, 2, ON_INT},
    {"shr", SHR, 2, ON_INT},      {"and", AND, 2, 3},           {"or", OR, 2, 3},
    {"xor", XOR, 2, 3},           {"not", NOT, 1, 3},           {"neg", NEG, 1, 6},
    {"abs", ABS, 1, 6},           {"sqrt", SQRT, 1, ON_FLOAT},  {"floor", FLOOR, 1, ON_FLOAT},
    {"eq", EQ, 2, 7},             {"ne", NE, 2, 7},             {"lt", LT, 2, 6},
    {"le", LE, 2, 6},             {"gt", GT, 2, 6},             {"ge", GE, 2, 6},
    {"maximum", MAXIMUM, 2, 6},   {"minimum", MINIMUM, 2, 6},   {"maximum_num", MAXIMUM_NUM, 2, 6},
    {"minimum_num", MINIMUM_NUM, 2, 6}, {"select", SELECT, 3, 7},
};

static uint64_t integer_op(Op op, const Format *f, uint64_t a, uint64_t b) {
    int64_t x = extended(f, a), y = extended(f, b);
    uint64_t mask = low_bits(f->width);
    switch (op) {
    case ADD: return (a + b) & mask;
    case SUB: return (a - b) & mask;
    case MUL: return (a * b) & mask;
    case AND: return a & b;
    case OR: return a | b;
    case XOR: return a ^ b;
    case NOT: return ~a & mask;
    case NEG: return (0 - a) & mask;
    case ABS: return (f->is_signed && x < 0 ? 0 - a : a) & mask;
    case SHL: return b < (uint64_t)f->width ? (a << b) & mask : 0;
    case SHR:
        if (b >= (uint64_t)f->width)
            return 0;
        /* Copies of the sign come in without shifting a negative number. */
        return f->is_signed && x < 0 ? ~(~(uint64_t)x >> b) & mask : a >> b;
    case FLOORDIV:
    case MOD: {
        if (b == 0)
            return 0;
        if (!f->is_signed)
            return op == MOD ? a % b : a / b;
        if (y == -1) /* the machine would trap at the minimum */
            return op == MOD ? 0 : (0 - a) & mask;
        int64_t quotient = x / y, remainder = x % y;
        if (remainder != 0 && (remainder < 0) != (y < 0)) {
            quotient--;
            remainder += y;
        }
        return (uint64_t)(op == MOD ? remainder : quotient) & mask;
    }
    default: return 0;
    }
}

static uint64_t float_op(Op op, const Format *f, uint64_t a, uint64_t b) {
    if (op == NEG)
        return a ^ sign_bit(f);
    if (op == ABS)
        return a & ~sign_bit(f);
    if (f->width == 32 && op != FLOOR) {
        float x, y, r = 0;
        uint32_t code = (uint32_t)a;
        memcpy(&x, &code, sizeof x);
        code = (uint32_t)b;
        memcpy(&y, &code, sizeof y);
        switch (op) {
        case ADD: r = x + y; break;
        case SUB: r = x - y; break;
        case MUL: r = x * y; break;
        case DIV: r = x / y; break;
        case SQRT: r = sqrtf(x); break;
        default: break;
        }
        memcpy(&code, &r, sizeof code);
        return code;
    }
    double x = to_double(f, a), y = to_double(f, b), r = 0;
    switch (op) {
    case ADD: r = x + y; break;
    case SUB: r = x - y; break;
    case MUL: r = x * y; break;
    case DIV: r = x / y; break;
    case SQRT: r = sqrt(x); break;
    case FLOOR: r = floor(x); break;
    default: break;
    }
    return from_double(f, r);
}

static bool compare(Op op, const Format *f, uint64_t a, uint64_t b) {
    bool less, equal, ordered = true;
    if (f->kind == FLOAT) {
        double x = to_double(f, a), y = to_double(f, b);
        less = x < y;
        equal = x == y;
        ordered = !is_nan(f, a) && !is_nan(f, b);
    } else {
        less = f->is_signed ? extended(f, a) < extended(f, b) : a < b;
        equal = a == b;
    }
    switch (op) {
    case EQ: return equal;
    case NE: return !equal;
    case LT: return less;
    case LE: return less || equal;
    case GT: return ordered && !less && !equal;
    default: return ordered && !less;
    }
}

static uint64_t extremum(Op op, const Format *f, uint64_t a, uint64_t b) {
    if (f->kind == FLOAT && (is_nan(f, a) || is_nan(f, b))) {
        if (op == MAXIMUM || op == MINIMUM)
            return nan_code(f);
        return is_nan(f, a) ? b : a;
    }
    return compare(op == MAXIMUM || op == MAXIMUM_NUM ? GE : LE, f, a, b) ? a : b;
}

static uint64_t apply(Op op, const Format *from, const Format *to, uint64_t a, uint64_t b, uint64_t c) {
    if (op == CAST)
        return cast(from, to, a);
    if (op == BITCAST)
        return a;
    if (op == SELECT)
        return a ? b : c;
    if (op >= EQ && op <= GE)
        return compare(op, from, a, b);
    if (op >= MAXIMUM && op <= MINIMUM_NUM)
        return extremum(op, from, a, b);
    return from->kind == FLOAT ? float_op(op, from, a, b) : integer_op(op, from, a, b);
}

/* ---- Kernels ---- */

enum { MAX_ARGS = 3, REASON = 160 };

typedef struct {
    enum { INPUT, CONSTANT, APPLY } what;
    const Format *format;
    bool vector;
    uint64_t bits; /* of a constant */
    Op op;
    int arity, args[MAX_ARGS];
} Value;

typedef struct {
    int count, inputs, outputs;
    Value *values;
    int *output;
} Kernel;

static void kernel_free(Kernel *kernel) {
    if (kernel) {
        free(kernel->values);
        free(kernel->output);
        free(kernel);
    }
}

typedef enum { OK, REJECTED, UNSUPPORTED } Answer;

/* The type checker. `reason` is written unless the answer is OK. */
static Answer check_node(const Json *item, Value *value, const Value *earlier, int position, char *reason) {
    const Json *name = member(item, "op"), *args = member(item, "args");
    const size_t known = sizeof operations / sizeof *operations;
    const Format *operand[MAX_ARGS] = {NULL, NULL, NULL};
    size_t which = 0;
    while (which < known && !is_text(name, operations[which].name))
        which++;
    if (which == known) {
        snprintf(reason, REASON, "this operation is not offered");
        return UNSUPPORTED;
    }
    if (count(member(item, "attrs")) || (member(item, "attrs") && member(item, "attrs")->child)) {
        snprintf(reason, REASON, "attributes of %s are not offered", operations[which].name);
        return UNSUPPORTED;
    }
    value->op = operations[which].op;
    value->arity = operations[which].arity;
    if (count(args) != (size_t)value->arity) {
        snprintf(reason, REASON, "%s takes %d operands", operations[which].name, value->arity);
        return REJECTED;
    }
    int i = 0;
    for (const Json *arg = args->child; arg; arg = arg->next, i++) {
        long long at;
        if (!integer(arg, &at) || at < 0 || at >= position) {
            snprintf(reason, REASON, "an operand of %s is no earlier value", operations[which].name);
            return REJECTED;
        }
        value->args[i] = (int)at;
        operand[i] = earlier[at].format;
        value->vector |= earlier[at].vector;
    }
    int first = value->op == SELECT ? 1 : 0; /* the first operand that has the common dtype */
    if (first && operand[0] != boolean) {
        snprintf(reason, REASON, "the condition of select is %s, not bool", operand[0]->name);
        return REJECTED;
    }
    for (i = first + 1; i < value->arity; i++)
        if (operand[i] != operand[first]) {
            snprintf(reason, REASON, "operands of %s and %s need a cast", operand[first]->name, operand[i]->name);
            return REJECTED;
        }
    if (!(operations[which].kinds & 1 << operand[first]->kind)) {
        snprintf(reason, REASON, "%s is not defined on %s", operations[which].name, operand[first]->name);
        return REJECTED;
    }
    if (value->op == BITCAST && operand[0]->width != value->format->width) {
        snprintf(reason, REASON, "bitcast needs formats of one width");
        return REJECTED;
    }
    if (value->op != CAST && value->op != BITCAST) {
        const Format *result = value->op >= EQ && value->op <= GE ? boolean : operand[first];
        if (result != value->format) {
            snprintf(reason, REASON, "the result of %s is %s", operations[which].name, result->name);
            return REJECTED;
        }
    }
    return OK;
}

static Answer compile(const Json *program, Kernel **result, char *reason) {
    const Json *values = member(program, "values"), *outputs = member(program, "outputs");
    if (member(program, "source")) {
        snprintf(reason, REASON, "there is no front end for source programs");
        return UNSUPPORTED;
    }
    if (!count(values) || !count(outputs)) {
        snprintf(reason, REASON, "the program has no values or no outputs");
        return REJECTED;
    }
    Kernel *kernel = *result = allocate(sizeof *kernel);
    kernel->values = allocate(count(values) * sizeof *kernel->values);
    kernel->output = allocate(count(outputs) * sizeof *kernel->output);
    for (const Json *item = values->child; item; item = item->next) {
        Value *value = &kernel->values[kernel->count];
        const Json *dtype = member(item, "input");
        if (dtype) {
            value->what = INPUT;
            value->vector = count(member(item, "dims")) > 0;
            kernel->inputs++;
        } else if ((dtype = member(item, "constant"))) {
            const Json *bits = member(item, "bits");
            value->what = CONSTANT;
            value->bits = bits && bits->kind == J_STRING ? strtoull(bits->text, NULL, 16) : 0;
        } else {
            value->what = APPLY;
            dtype = member(item, "dtype");
        }
        value->format = find_format(dtype);
        if (!value->format) {
            snprintf(reason, REASON, "value %d has a dtype that is none of the 16 scalar types", kernel->count);
            return REJECTED;
        }
        if (value->what == APPLY) {
            Answer answer = check_node(item, value, kernel->values, kernel->count, reason);
            if (answer != OK)
                return answer;
        }
        kernel->count++;
    }
    for (const Json *item = outputs->child; item; item = item->next) {
        long long at;
        if (!integer(item, &at) || at < 0 || at >= kernel->count) {
            snprintf(reason, REASON, "an output is no value of the program");
            return REJECTED;
        }
        kernel->output[kernel->outputs++] = (int)at;
    }
    return OK;
}

/* ---- Running ---- */

static int digit(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Read one operand; false where it is not what the kernel expects. */
static bool read_array(const Json *json, const Format *format, bool vector, size_t *n, bool *known, uint64_t **codes) {
    const Json *shape = member(json, "shape"), *bits = member(json, "bits");
    size_t digits = 2 * (size_t)storage_bytes(format), length = 1;
    long long extent;
    if (!is_text(member(json, "dtype"), format->name) || count(shape) != vector || !bits || bits->kind != J_STRING)
        return false;
    if (vector) {
        if (!integer(shape->child, &extent) || extent < 0 || (*known && *n != (size_t)extent))
            return false;
        *known = true;
        *n = length = (size_t)extent;
    }
    if (bits->length != digits * length)
        return false;
    *codes = allocate(length * sizeof **codes);
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < digits; k++) {
            int nibble = digit(bits->text[i * digits + k]);
            if (nibble < 0)
                return false;
            (*codes)[i] = (*codes)[i] << 4 | (uint64_t)nibble;
        }
    return true;
}

static void write_array(const Format *format, bool vector, size_t n, const uint64_t *codes) {
    size_t digits = 2 * (size_t)storage_bytes(format), length = vector ? n : 1;
    char *text = allocate(digits * length + 1);
    for (size_t i = 0; i < length; i++)
        for (size_t k = 0; k < digits; k++)
            text[i * digits + k] = "0123456789abcdef"[codes[i] >> 4 * (digits - 1 - k) & 15];
    printf("{\"dtype\":\"%s\",\"shape\":[", format->name);
    if (vector)
        printf("%zu", n);
    printf("],\"bits\":\"%s\"}", text);
    free(text);
}

static const char *run(const Kernel *kernel, const Json *inputs) {
    uint64_t **codes = allocate((size_t)kernel->count * sizeof *codes);
    const char *problem = NULL;
    size_t n = 1;
    bool known = false;
    if (count(inputs) != (size_t)kernel->inputs)
        problem = "the number of inputs is not the kernel's";
    const Json *next = problem ? NULL : inputs->child;
    for (int v = 0; v < kernel->count && !problem; v++)
        if (kernel->values[v].what == INPUT) {
            if (!read_array(next, kernel->values[v].format, kernel->values[v].vector, &n, &known, &codes[v]))
                problem = "an input has another dtype, shape or number of digits than the kernel says";
            next = next->next;
        }
    for (int v = 0; v < kernel->count && !problem; v++) {
        const Value *value = &kernel->values[v];
        if (value->what == INPUT)
            continue;
        size_t length = value->vector ? n : 1;
        codes[v] = allocate(length * sizeof **codes);
        if (value->what == CONSTANT) {
            codes[v][0] = value->bits;
            continue;
        }
        const uint64_t *arg[MAX_ARGS] = {codes[value->args[0]], codes[value->args[0]], codes[value->args[0]]};
        size_t step[MAX_ARGS] = {0, 0, 0}; /* 0 repeats a scalar */
        for (int i = 0; i < value->arity; i++) {
            arg[i] = codes[value->args[i]];
            step[i] = kernel->values[value->args[i]].vector;
        }
        const Format *from = kernel->values[value->args[0]].format;
        for (size_t i = 0; i < length; i++)
            codes[v][i] = apply(value->op, from, value->format, arg[0][i * step[0]], arg[1][i * step[1]], arg[2][i * step[2]]);
    }
    if (!problem) {
        printf("\"outputs\":[");
        for (int i = 0; i < kernel->outputs; i++) {
            const Value *value = &kernel->values[kernel->output[i]];
            printf(i ? "," : "");
            write_array(value->format, value->vector, n, codes[kernel->output[i]]);
        }
        printf("]");
    }
    for (int v = 0; v < kernel->count; v++)
        free(codes[v]);
    free(codes);
    return problem;
}

/* ---- The conversation ---- */

static Kernel **kernels;
static size_t kernel_count;

static size_t keep(Kernel *kernel) {
    for (size_t i = 0; i < kernel_count; i++)
        if (!kernels[i]) {
            kernels[i] = kernel;
            return i;
        }
    kernels = grow(kernels, (kernel_count + 1) * sizeof *kernels);
    kernels[kernel_count] = kernel;
    return kernel_count++;
}

static void answer_compile(const Json *programs) {
    printf("\"answers\":[");
    for (const Json *item = programs ? programs->child : NULL; item; item = item->next) {
        Kernel *kernel = NULL;
        char reason[REASON] = "";
        Answer answer = compile(item, &kernel, reason);
        if (answer == OK)
            printf("{\"ok\":%zu}", keep(kernel));
        else
            printf("{\"%s\":\"%s\"}", answer == REJECTED ? "rejected" : "unsupported", reason);
        if (answer != OK)
            kernel_free(kernel);
        printf(item->next ? "," : "");
    }
    printf("]");
}

static void respond(const Json *request) {
    const Json *type = member(request, "type");
    long long id = 0, handle;
    integer(member(request, "id"), &id);
    printf("{\"id\":%lld,", id);
    if (is_text(type, "hello")) {
        printf("\"halfulp\":1,\"name\":\"c-example\",\"opt_levels\":[0],\"facts\":{\"flushes_subnormals\":false,"
               "\"fuses_multiply_add\":false,\"versions\":{\"pipe_runner\":\"1\"}}");
    } else if (is_text(type, "compile")) {
        answer_compile(member(request, "programs"));
    } else if (is_text(type, "run")) {
        const char *problem = "there is no such handle";
        if (integer(member(request, "handle"), &handle) && handle >= 0 && (size_t)handle < kernel_count && kernels[handle])
            problem = run(kernels[handle], member(request, "inputs"));
        if (problem)
            printf("\"error\":\"%s\"", problem);
    } else if (is_text(type, "release")) {
        const Json *handles = member(request, "handles");
        for (const Json *item = handles ? handles->child : NULL; item; item = item->next)
            if (integer(item, &handle) && handle >= 0 && (size_t)handle < kernel_count) {
                kernel_free(kernels[handle]);
                kernels[handle] = NULL;
            }
        printf("\"released\":true");
    } else {
        printf("\"unsupported\":\"this type of request is not offered\"");
    }
    printf("}\n");
    fflush(stdout);
}

/* Read a line of any length; NULL at the end of the input. */
static char *read_line(void) {
    size_t size = 1 << 16, length = 0;
    char *line = allocate(size);
    while (fgets(line + length, (int)(size - length < 1 << 20 ? size - length : 1 << 20), stdin)) {
        length += strlen(line + length);
        if (length && line[length - 1] == '\n')
            return line;
        if (length + 1 >= size)
            line = grow(line, size *= 2);
    }
    free(line);
    return NULL;
}

int main(void) {
    char *line;
    while ((line = read_line())) {
        Parser parser = {line, false};
        Json *request = parse_value(&parser, 0);
        if (parser.failed)
            printf("{\"id\":null,\"error\":\"the request is not JSON\"}\n"), fflush(stdout);
        else
            respond(request);
        json_free(request);
        free(line);
    }
    for (size_t i = 0; i < kernel_count; i++)
        kernel_free(kernels[i]);
    free(kernels);
    return 0;
}
