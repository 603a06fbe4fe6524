/* The dispatcher that Triton's AOT linker wrote, behind foldproof_selector.h. Which kernel runs is decided by Triton's
 * generated code alone; here args are brought into its params by name, and the stub driver is asked what was launched.
 *
 * peer_table.h is generated a library: names, the params of the dispatcher, its constants, the variants in link order,
 * and peer_call, which calls the dispatcher with C's own conversions. */
#include <cuda.h>
#include <stdio.h>
#include <string.h>

#include "foldproof_selector.h"
#include "peer.h"

struct peer_variant {
    const char *hash;
    const unsigned char *image;
    int reads;
};

struct peer_param {
    const char *name;
    int kind;      /* the kind of arg whose C type this is; -1 for the types that only an annotated param has */
    int annotated; /* any int that lies in [low, high] fits */
    int64_t low;
    uint64_t high;
};

struct peer_const {
    int algo;
    const char *name;
    int kind;
    uint64_t value;
};

#include "peer_table.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

_Static_assert(COUNT(PEER_PARAMS) <= PEER_MAX_ARGS, "more params than peer.h has room for");

struct foldproof_capture {
    int loaded;
};

static struct foldproof_capture only;

int peer_reads(const void *image) {
    for (int i = 0; i < COUNT(PEER_VARIANTS); i++)
        if (PEER_VARIANTS[i].image == image) return PEER_VARIANTS[i].reads;
    return 0;
}

uint32_t foldproof_selector_abi(void) { return FOLDPROOF_SELECTOR_ABI; }

const char *foldproof_selector_name(void) { return PEER_NAME; }

/* None cannot be written in a signature of Triton's AOT compiler. */
uint64_t foldproof_selector_kinds(void) {
    return 1u << FOLDPROOF_I32 | 1u << FOLDPROOF_I64 | 1u << FOLDPROOF_U64 | 1u << FOLDPROOF_U1 | 1u << FOLDPROOF_FP32 |
           1u << FOLDPROOF_PTR;
}

/* The order of linking is compiled in, so the capture must hold these variants in this order. `"hash":"` is searched as
 * text: within a JSON string its quotes would be escaped, and no other field of the format has this name and a text. */
int32_t foldproof_selector_load(const char *json, uint64_t length, foldproof_capture **out, char *error,
                                uint64_t error_size) {
    static const char key[] = "\"hash\":\"";
    const uint64_t key_size = sizeof(key) - 1;
    int found = 0, wrong = 0;
    for (uint64_t at = 0; at + key_size <= length; at++) {
        if (memcmp(json + at, key, key_size) != 0) continue;
        const char *hash = json + at + key_size;
        const uint64_t left = length - at - key_size;
        const char *end = memchr(hash, '"', left);
        const uint64_t size = end ? (uint64_t)(end - hash) : left;
        const int known = found < COUNT(PEER_VARIANTS) && strlen(PEER_VARIANTS[found].hash) == size &&
                          memcmp(PEER_VARIANTS[found].hash, hash, size) == 0;
        wrong |= !known;
        found++;
    }
    if (wrong || found != COUNT(PEER_VARIANTS)) {
        snprintf(error, error_size, "linked from %d other variants, or in another order", COUNT(PEER_VARIANTS));
        return 1;
    }
    *out = &only;
    return 0;
}

void foldproof_selector_free(foldproof_capture *capture) { (void)capture; }

static int is(const foldproof_batch *batch, uint32_t index, const char *text) {
    const foldproof_string *string = &batch->strings[index];
    return strlen(text) == string->length && memcmp(batch->text + string->offset, text, string->length) == 0;
}

static int fits(const struct peer_param *param, const foldproof_arg *arg) {
    const int is_int = arg->kind == FOLDPROOF_I32 || arg->kind == FOLDPROOF_I64 || arg->kind == FOLDPROOF_U64;
    if (!param->annotated || !is_int) return arg->kind == param->kind;
    if (arg->kind != FOLDPROOF_U64 && (int64_t)arg->number < 0) return (int64_t)arg->number >= param->low;
    return arg->number <= param->high;
}

/* The args in the order of the dispatcher's params. 0: one is absent, has another C type, or has no param. */
static int place(const foldproof_batch *batch, const foldproof_launch *launch, uint64_t *values) {
    if (launch->arg_count != (uint32_t)COUNT(PEER_PARAMS)) return 0;
    for (int i = 0; i < COUNT(PEER_PARAMS); i++) {
        int placed = 0;
        for (uint32_t j = 0; j < launch->arg_count && !placed; j++) {
            const foldproof_arg *arg = &batch->args[launch->first_arg + j];
            if (!is(batch, arg->name, PEER_PARAMS[i].name) || !fits(&PEER_PARAMS[i], arg)) continue;
            values[i] = arg->number;
            placed = 1;
        }
        if (!placed) return 0;
    }
    return 1;
}

/* Whether the dispatcher has every constant that the launch names. */
static int has_consts(const foldproof_batch *batch, const foldproof_launch *launch, int algo) {
    for (uint32_t i = 0; i < launch->const_count; i++) {
        const foldproof_const *wanted = &batch->consts[launch->first_const + i];
        int has = 0;
        for (int j = 0; j < PEER_CONST_COUNT && !has; j++) {
            const struct peer_const *own = &PEER_CONSTS[j];
            has = own->algo == algo && is(batch, wanted->name, own->name) && own->kind == wanted->kind &&
                  own->value == wanted->value;
        }
        if (!has) return 0;
    }
    return 1;
}

static int32_t launched(void) {
    for (int i = 0; i < COUNT(PEER_VARIANTS); i++)
        if (PEER_VARIANTS[i].image == peer_launched) return i;
    return FOLDPROOF_UNWRITTEN;
}

static int32_t decide(const foldproof_batch *batch, const foldproof_launch *launch) {
    uint64_t values[PEER_MAX_ARGS];
    if (!is(batch, launch->fn, PEER_FN) || !place(batch, launch, values)) return FOLDPROOF_MISSING;
    for (int algo = 0; algo < PEER_ALGOS_TRIED; algo++) {
        if (!has_consts(batch, launch, algo)) continue;
        peer_launched = NULL;
        if (peer_call(algo, values) == CUDA_SUCCESS) return launched();
    }
    return FOLDPROOF_MISSING;
}

void foldproof_selector_decide(foldproof_capture *capture, const foldproof_batch *batch, int32_t *picks,
                               uint8_t *passes) {
    (void)capture, (void)passes;
    for (uint64_t i = 0; i < batch->launch_count; i++) picks[i] = decide(batch, &batch->launches[i]);
}

/* Calls the default entry as a C program would, with values of 64 bits that C converts to what the entry declares (a
 * float: its 32 bits). Returns the variant that was launched, or FOLDPROOF_MISSING; `words` receives the first four
 * bytes of each arg that its kernel takes. */
int32_t peer_trial(const uint64_t *values, uint32_t *words) {
    peer_launched = NULL;
    peer_watched = 1;
    const CUresult result = peer_call(0, values);
    peer_watched = 0;
    memcpy(words, peer_words, sizeof(peer_words));
    return result == CUDA_SUCCESS ? launched() : FOLDPROOF_MISSING;
}
