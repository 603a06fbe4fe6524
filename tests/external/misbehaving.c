/* A library that picks 0 for everything, except for the one fault that the environment variable MODE names. It shows
 * it on a launch whose first arg has the number 666, while loading a capture, or at the start. */
#include <foldproof_selector.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int mode(const char *name) {
    const char *set = getenv("MODE");
    return set && strcmp(set, name) == 0;
}

static void sleeper(void) {
    pid_t child = fork();
    if (child == 0) {
        setsid();
        for (;;) sleep(60);
    }
    FILE *note = fopen(getenv("NOTE"), "w");
    fprintf(note, "%d", (int)child);
    fclose(note);
}

__attribute__((constructor)) static void start(void) {
    if (mode("dies-of-dlopen")) abort();
    if (mode("hangs-in-dlopen")) for (;;) sleep(60);
}

uint32_t foldproof_selector_abi(void) { return mode("other-version") ? 2 : FOLDPROOF_SELECTOR_ABI; }

#ifndef WITHOUT_NAME
const char *foldproof_selector_name(void) { return "misbehaving"; }
#endif

uint64_t foldproof_selector_kinds(void) { return mode("few-kinds") ? 1u << FOLDPROOF_I32 : 127; }

struct foldproof_capture { int loaded; };
static int captures, decided;

int32_t foldproof_selector_load(const char *json, uint64_t length, foldproof_capture **out, char *error,
                                uint64_t error_size) {
    int marked = length > 12 && memmem(json, length, "poison", 6) != NULL;
    if (mode("dies-of-capture") && marked) abort();
    if (mode("refuses-capture") && marked) {
        snprintf(error, error_size, "poison");
        return 1;
    }
    *out = calloc(1, sizeof **out);
    captures++;
    return 0;
}

void foldproof_selector_free(foldproof_capture *capture) {
    captures--;
    free(capture);
}

void foldproof_selector_decide(foldproof_capture *capture, const foldproof_batch *batch, int32_t *picks,
                               uint8_t *passes) {
    for (uint64_t i = 0; i < batch->launch_count; i++) {
        const foldproof_launch *launch = &batch->launches[i];
        int is_666 = launch->arg_count > 0 && batch->args[launch->first_arg].number == 666;
        picks[i] = 0;
        decided++;
        if (mode("once") && decided == 5 && access(getenv("NOTE"), F_OK) != 0) {
            fclose(fopen(getenv("NOTE"), "w"));
            abort();
        }
        if (mode("prints")) printf("deciding\n");
        if (!is_666) continue;
        if (mode("segfault")) raise(SIGSEGV);
        if (mode("exit")) _exit(0);
        if (mode("hang")) for (;;) sleep(60);
        if (mode("out-of-range")) picks[i] = 2;
        if (mode("negative")) picks[i] = -5;
        if (mode("unwritten")) picks[i] = FOLDPROOF_UNWRITTEN;
        if (mode("bad-pass")) passes[i] = 77;
        if (mode("stderr")) for (;;) fprintf(stderr, "all is well\n");
        if (mode("stdout")) for (;;) printf("all is well\n");
        if (mode("fork")) {
            sleeper();
            _exit(3);
        }
    }
}
