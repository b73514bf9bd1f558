/* SPDX-License-Identifier: Apache-2.0 */
/* libdray_iq, as the radio of srsRAN uses it. `where` is the broker's directory. */
#include "over.h"

#include <dray_iq.h>

static void *dray_end(bool sends, const char *where)
{
	struct dray_iq_options options = {.size = sizeof(options), .directory = where};
	struct dray_iq *stream;

	must(dray_iq_open(sends ? "a" : "b", sends ? DRAY_IQ_SEND : DRAY_IQ_RECEIVE, &options, &stream) == 0, "dray_iq_open failed");
	return stream;
}

static void dray_send(void *end, const void *samples, size_t bytes)
{
	must(dray_iq_send(end, samples, bytes) == 0, "dray_iq_send failed");
}

static void dray_receive(void *end, void *samples, size_t bytes)
{
	must(dray_iq_receive(end, samples, bytes, 10000) == (ssize_t)bytes, "no samples in 10 s");
}

static void dray_end_close(void *end)
{
	dray_iq_close(end);
}

const struct over over_dray = {
	.name = "dray",
	.open = dray_end,
	.send = dray_send,
	.receive = dray_receive,
	.close = dray_end_close,
};
