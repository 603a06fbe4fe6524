/* foldproof_selector.h: the C interface of a kernel selector under test, version 1.
 *
 * A shared library that exports the six functions below can be driven by foldproof: it loads a capture from its
 * JSON, decides batches of launches, and frees the capture. Rules, words and the JSON format are those of
 * docs/reference/protocol.md; what differs is only that launches arrive as arrays of structs.
 *
 * - Byte order and sizes: the host's; every struct has the size that its assertion states. Padding is spelled out
 *   as `reserved`, is zero, and is not to be read.
 * - Calls come from one thread. A library may print to standard error, within reason, and must not read standard input.
 * - Everything that a pointer argument points to belongs to the caller and is good until the call returns.
 * - Text is UTF-8 with a length, without a final NUL; it may hold NUL characters.
 */
#ifndef FOLDPROOF_SELECTOR_H
#define FOLDPROOF_SELECTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define FOLDPROOF_ASSERT_SIZE(type, size) static_assert(sizeof(type) == (size), #type " has another size")
#else
#define FOLDPROOF_ASSERT_SIZE(type, size) _Static_assert(sizeof(type) == (size), #type " has another size")
#endif

/* The version of this interface. A library built against another version is refused before any other call. */
#define FOLDPROOF_SELECTOR_ABI 1u

/* An index into `foldproof_batch.strings` that names no string: the launch says nothing here. */
#define FOLDPROOF_ABSENT UINT32_MAX

/* The kind of an arg (docs/reference/rules.md): the values of `foldproof_arg.kind`, and bit numbers of
 * `foldproof_selector_kinds`. */
enum {
    FOLDPROOF_I32 = 0,  /* number: the value, as the 64 bits of an int64_t */
    FOLDPROOF_I64 = 1,  /* number: the value, as the 64 bits of an int64_t */
    FOLDPROOF_U64 = 2,  /* number: the value */
    FOLDPROOF_U1 = 3,   /* number: 0 or 1 */
    FOLDPROOF_FP32 = 4, /* number: the 32 bits of the float */
    FOLDPROOF_NONE = 5, /* number: 0 */
    FOLDPROOF_PTR = 6   /* number: the address */
};

/* The kind of a constant: the values of `foldproof_const.kind`. Two constants are equal only if their kinds are:
 * 1, true and 1.0 are three constants. */
enum {
    FOLDPROOF_CONST_INT = 0,  /* value: an int in [-2^63, 2^63), as the 64 bits of an int64_t */
    FOLDPROOF_CONST_UINT = 1, /* value: an int in [2^63, 2^64); the same JSON kind {"int"} as the one above */
    FOLDPROOF_CONST_F32 = 2,  /* value: the 32 bits of the float; -0.0 differs from 0.0 */
    FOLDPROOF_CONST_BOOL = 3, /* value: 0 or 1 */
    FOLDPROOF_CONST_STR = 4,  /* value: an index into `foldproof_batch.strings` */
    FOLDPROOF_CONST_NONE = 5  /* value: 1 */
};

/* What a pick says when it is no index into `kernels`. */
enum {
    FOLDPROOF_MISSING = -1,         /* MissingTritonVariant: no candidate is admissible */
    FOLDPROOF_AMBIGUOUS = -2,       /* AmbiguousTritonVariant: several are, and the selector refuses to choose */
    FOLDPROOF_INVALID_LAUNCH = -3,  /* InvalidLaunch: the launch contradicts itself */
    FOLDPROOF_INVALID_CAPTURE = -4, /* InvalidCapture: found only now; `load` is the place to say it */
    FOLDPROOF_UNWRITTEN = INT32_MIN /* what every pick holds before the call; left there, it is a fault */
};

/* What `passes` may say of a selection. */
enum {
    FOLDPROOF_PASS_UNSAID = 0, /* before the call; left there, the pass is not compared */
    FOLDPROOF_PASS_EXACT = 1,
    FOLDPROOF_PASS_GENERAL = 2,
    FOLDPROOF_PASS_RUNTIME_ONE = 3
};

/* One text of a batch. No two strings of a batch are equal, so equal texts have equal indices. */
typedef struct {
    uint32_t offset; /* of its first byte in `foldproof_batch.text` */
    uint32_t length; /* in bytes */
} foldproof_string;
FOLDPROOF_ASSERT_SIZE(foldproof_string, 8);

/* One arg of a launch. */
typedef struct {
    uint64_t number;     /* value, address or bits: see the kinds */
    uint64_t bytes;      /* of a pointer with has_bytes 1: the size of its allocation in bytes; else 0 */
    uint32_t name;       /* string index of its name */
    uint32_t type;       /* of a pointer: string index of its type, such as "*bf16"; else FOLDPROOF_ABSENT */
    uint8_t kind;        /* one of the kinds */
    uint8_t has_bytes;   /* 1: the launch says `bytes`; 0: it does not */
    uint8_t reserved[6];
} foldproof_arg;
FOLDPROOF_ASSERT_SIZE(foldproof_arg, 32);

/* One constant that a launch names. */
typedef struct {
    uint64_t value;      /* see the kinds of constants */
    uint32_t name;       /* string index of its name */
    uint8_t kind;        /* one of the kinds of constants */
    uint8_t reserved[3];
} foldproof_const;
FOLDPROOF_ASSERT_SIZE(foldproof_const, 16);

/* One launch. Its args are args[first_arg .. first_arg + arg_count), its constants likewise. Several launches may
 * share a range. */
typedef struct {
    int64_t num_warps;        /* pinned num_warps, or -1: not pinned */
    int64_t num_stages;       /* pinned num_stages, or -1: not pinned; 0 is a pin */
    uint32_t fn;              /* string index of the function's name */
    uint32_t first_arg;
    uint32_t arg_count;
    uint32_t first_const;
    uint32_t const_count;
    uint32_t arch;            /* string index of the pinned arch, or FOLDPROOF_ABSENT */
    uint32_t source;          /* string index of the launch's source, or FOLDPROOF_ABSENT */
    int32_t enable_fp_fusion; /* pinned: 0 or 1; -1: not pinned */
} foldproof_launch;
FOLDPROOF_ASSERT_SIZE(foldproof_launch, 48);

/* The launches of one call and the tables that they index. Tables may hold entries that no launch of this call uses. */
typedef struct {
    const char *text;                /* the bytes of all strings */
    const foldproof_string *strings;
    const foldproof_arg *args;
    const foldproof_const *consts;
    const foldproof_launch *launches;
    uint64_t text_size;              /* in bytes */
    uint64_t string_count;
    uint64_t arg_count;
    uint64_t const_count;
    uint64_t launch_count;           /* how many launches to decide, from launches[0] on */
} foldproof_batch;
FOLDPROOF_ASSERT_SIZE(foldproof_batch, 40 + 5 * sizeof(void *));

/* A loaded capture; the library says what is in it. */
typedef struct foldproof_capture foldproof_capture;

/* FOLDPROOF_SELECTOR_ABI as the library was compiled with. The first call, and the only one if it differs. */
uint32_t foldproof_selector_abi(void);

/* The selector's name, NUL-terminated, good as long as the library is loaded. */
const char *foldproof_selector_name(void);

/* The kinds of arg that the selector knows: bit 1 << kind. Launches with other kinds are not sent. */
uint64_t foldproof_selector_kinds(void);

/* Loads a capture from its JSON, an object with `kernels`: `length` bytes at `json`.
 * Returns 0 and a handle in `*out`; or another number for a capture that is invalid (the launches against it are then
 * answered InvalidCapture), with the reason as NUL-terminated text in `error`, which has room for `error_size` bytes. */
int32_t foldproof_selector_load(const char *json, uint64_t length, foldproof_capture **out, char *error,
                                uint64_t error_size);

/* Decides `batch->launch_count` launches against one capture. `picks[i]` receives the index into `kernels` of the
 * picked variant, or a negative word; `passes[i]` may receive the pass. Both arrays have launch_count entries, and the
 * answer to a launch depends on that launch and the capture alone. */
void foldproof_selector_decide(foldproof_capture *capture, const foldproof_batch *batch, int32_t *picks,
                               uint8_t *passes);

/* Frees a capture; no call uses it afterwards. */
void foldproof_selector_free(foldproof_capture *capture);

#ifdef __cplusplus
}
#endif
#endif
