/* What the stub driver and the selector share. */
#ifndef FOLDPROOF_PEER_H
#define FOLDPROOF_PEER_H

#include <stdint.h>

#define PEER_MAX_ARGS 32

extern const void *peer_launched;            /* the image of the kernel launched last; the selector clears it */
extern int peer_watched;                     /* whether the driver keeps the args of a launch */
extern uint32_t peer_words[PEER_MAX_ARGS];   /* the first four bytes of each arg of the kernel launched last */

/* How many args the kernel of that image takes, the two scratch pointers aside; 0 if it is none of ours. */
int peer_reads(const void *image);
#endif
