/* JSON as a tree, in C11 without a library. Enough for the vectors: escapes in strings stay as they are written. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Objects and arrays have children, from the first to the next; a child of an object has a key. All else has text. */
typedef struct node {
    const char *key, *text;
    struct node *first, *next;
} node;

static char *at;         /* where the parser stands */
static node *fresh;      /* the next unused node */
static const char *path; /* of the file, for messages */

static void fail(const char *why) {
    fprintf(stderr, "%s: %s\n", path, why);
    exit(1);
}

static void skip(void) { at += strspn(at, " \t\r\n,:"); }

static char *string(void) {
    if (*at++ != '"') fail("no JSON, or not all of it");
    char *start = at;
    while (*at && *at != '"') at += at[0] == '\\' && at[1] ? 2 : 1;
    if (!*at) fail("a string does not end");
    *at++ = 0; /* ends the text in place */
    return start;
}

static node *value(void) {
    node *self = fresh++, **last = &self->first;
    if (*at == '{' || *at == '[') {
        char end = *at++ == '{' ? '}' : ']';
        for (skip(); *at != end; skip()) {
            const char *key = end == '}' ? string() : "";
            skip();
            *last = value();
            (*last)->key = key;
            last = &(*last)->next;
        }
        at++;
    } else if (*at == '"') {
        self->text = string();
    } else { /* a number, true, false or null; the text goes on behind it, which no reader of numbers minds */
        self->text = at;
        at += strcspn(at, " \t\r\n,:]}");
        if (at == self->text) fail("no JSON, or not all of it");
    }
    return self;
}

/* The tree of a file, which stays in memory until the program ends. */
static const node *load(const char *name) {
    path = name;
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END)) fail("cannot be read");
    size_t size = (size_t)ftell(file);
    rewind(file);
    at = (char *)calloc(size + 1, 1);
    fresh = (node *)calloc(size + 1, sizeof *fresh); /* no value is shorter than a character */
    if (!at || !fresh || fread(at, 1, size, file) != size) fail("cannot be read");
    fclose(file);
    skip();
    return value();
}

/* A member of an object, NULL if it is absent. */
static const node *get(const node *object, const char *key) {
    for (const node *n = object ? object->first : NULL; n; n = n->next)
        if (!strcmp(n->key, key)) return n;
    return NULL;
}

/* The first child of a member, NULL if there is none. */
static const node *items(const node *object, const char *key) {
    const node *list = get(object, key);
    return list ? list->first : NULL;
}

/* Text; a pattern of up to 64 bits; a whole number. */
static const char *text(const node *n) {
    if (!n || !n->text) fail("a value is missing, or no text");
    return n->text;
}

static uint64_t bits(const node *n) { return strtoull(text(n), NULL, 16); }

static int64_t integer(const node *n) { return strtoll(text(n), NULL, 10); }
