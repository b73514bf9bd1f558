/* SPDX-License-Identifier: Apache-2.0 */
/* Whether messages of slots arrive in their receive windows. */
#ifndef GEN_WINDOWS_H
#define GEN_WINDOWS_H

#include "fapi.h"
#include "fronthaul.h"
#include "histogram.h"
#include "json.h"
#include "packet.h"

struct windows {
	const struct fronthaul *fronthaul; /* of what the messages are; NULL both: of nothing */
	const struct fapi *fapi;
	struct windows_kind {
		uint64_t early, on_time, late;
		uint64_t sent_late;		/* too late to be on time: not judged */
		struct histogram after_opening; /* ns, of those on time and late */
	} kinds[SLOTS_KINDS];
};

static inline bool windows_exist(const struct windows *w)
{
	return w->fronthaul || w->fapi;
}

/* Judge a message that was received at `now`. */
void windows_judge(struct windows *windows, const struct io_buf *message,
		   const struct packet *packet, uint64_t now);

/* Messages that were early or late, of those judged. */
uint64_t windows_missed(const struct windows *windows);

void windows_write(const struct windows *windows, struct json *j);

#endif
