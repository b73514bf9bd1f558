/* SPDX-License-Identifier: Apache-2.0 */
/* The role "send". */
#include <errno.h>
#include <stdlib.h>

#include "bulk_sender.h"
#include "clock.h"
#include "sender.h"

static void interval(struct sender *s, uint64_t now)
{
	struct json j = run_interval_begin(s->run, now);

	sender_write_interval(s, &j);
	(void)run_interval_finish(s->run, &j, now);
}

/* Sleep, or spin, until a burst or other work is due. */
static void wait_until(const struct options *o, uint64_t due)
{
	if (o->busy)
		clock_relax();
	else
		io_sleep(due);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The first stream goes first: the bulk delays it by one packet at most. */
static void send_all(struct sender *s, struct bulk_sender *bulk)
{
	struct run *run = s->run;
	uint64_t now = clock_now();

	while (!run_stopped() && !run->error) {
		uint64_t due = sender_due(s, now), end = run_interval_due(run),
			 next = earlier(due, bulk_sender_due(bulk));

		if (due == UINT64_MAX)
			return;
		if (now >= end)
			interval(s, now);
		run_service(run, now);
		if (now >= due) {
			run->error = sender_burst(s, &now);
			continue;
		}
		if (now >= next)
			run->error = bulk_sender_packet(bulk, s->measuring);
		else
			wait_until(run->options, earlier(next, end));
		now = clock_now();
	}
}

int role_send(const struct options *o, struct io *io)
{
	struct run run = run_begin(o, io, NULL);
	struct bulk_sender bulk = bulk_sender_begin(&run);
	struct sender *s = sender_new(&run);
	struct json j;
	int status;

	if (!s) {
		fputs("draygen: no memory\n", stderr);
		return EXIT_ERROR;
	}
	send_all(s, &bulk);
	if (!run.error)
		sender_finish(s);
	j = run_result_begin(&run);
	sender_write(s, &j);
	bulk_sender_write(&bulk, &j);
	run_write_link(&run, &j);
	status = run_result_end(&run, &j, s->unsent == 0 && s->errors == 0 && !run.error);
	free(s);
	return status;
}
