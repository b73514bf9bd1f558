/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of gtpu: read from a file, or generated. */
#ifndef VNF_SESSIONS_H
#define VNF_SESSIONS_H

#include "gtpu.h"
#include "lines.h"

/*
 * Lines "UE-ADDRESS TEID-HERE TEID-THERE PEER-ADDRESS QFI"; "#" begins a comment. 0, or -1 with the
 * error's text, which names the line.
 */
int sessions_read(struct gtpu *gtpu, const char *path, struct lines_error *error);

/* `count` sessions: addresses from `ue` on, both TEIDs from `teid` on. 0, or -1: no memory. */
int sessions_generate(struct gtpu *gtpu, uint32_t count, uint32_t ue, uint32_t teid, uint32_t peer,
		      uint8_t qfi);

#endif
