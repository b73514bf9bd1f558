/* SPDX-License-Identifier: Apache-2.0 */
/* The sending engine. */
#include "sender.h"

#include <errno.h>
#include <stdlib.h>

#include "clock.h"

#define REFUSALS 100 /* of one batch, before it is given up */
#define ENDS 8
#define END_NS (2 * NS_PER_SECOND)

/* Packets that go to the port together. */
struct batch {
	struct io_buf bufs[IO_BATCH];
	struct packet packets[IO_BATCH];
	unsigned n, done;
	unsigned flow;
	uint64_t due, deadline;
};

struct sender *sender_new(struct run *run)
{
	struct sender *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->run = run;
	s->schedule = schedule_begin(run->options, clock_now());
	s->warmup_left = run->options->warmup;
	return s;
}

static bool paced(const struct sender *s)
{
	return s->schedule.rate != 0;
}

/* The end of the duration, on the schedule if there is one. */
static bool over(const struct sender *s, uint64_t due)
{
	const struct options *o = s->run->options;

	if (o->packets && s->scheduled >= o->packets)
		return true;
	return o->duration_ns && s->measuring && due - s->started_ns >= o->duration_ns;
}

uint64_t sender_due(struct sender *s, uint64_t now)
{
	uint64_t due = paced(s) ? schedule_due(&s->schedule) : now;

	if (!s->measuring && s->warmup_left == 0) {
		s->measuring = true;
		s->started_ns = s->ended_ns = due;
	}
	if (!s->done)
		s->done = over(s, due);
	return s->done ? UINT64_MAX : due;
}

/* How many packets are due with this burst. */
static uint32_t due_now(const struct sender *s)
{
	uint64_t n = s->schedule.burst, limit = s->run->options->packets;

	if (!s->measuring)
		return (uint32_t)(n < s->warmup_left ? n : s->warmup_left);
	return (uint32_t)(limit && n > limit - s->scheduled ? limit - s->scheduled : n);
}

static void account(struct sender *s, uint32_t n, bool sent)
{
	if (!s->measuring) {
		s->warmup_left -= n;
		s->warmup_sent += sent ? n : 0;
		return;
	}
	s->scheduled += n;
	*(sent ? &s->sent : &s->unsent) += n;
}

/* Write the headers of packets that are not sent yet, with the present time. */
static uint64_t stamp(struct batch *b, bool has_schedule)
{
	uint64_t now = clock_now();

	for (unsigned i = b->done; i < b->n; i++) {
		b->packets[i].sent = now;
		b->packets[i].intended = has_schedule ? b->due : now;
		packet_write(b->bufs[i].data, &b->packets[i]);
	}
	return now;
}

static void fill(struct sender *s, struct batch *b)
{
	const struct options *o = s->run->options;
	uint64_t sequence = s->measuring ? s->sent : s->warmup_sent;

	for (unsigned i = 0; i < b->n; i++) {
		struct packet *p = &b->packets[i];

		*p = (struct packet){
			.type = PACKET_DATA,
			.flags = (uint16_t)((s->measuring ? 0 : PACKET_WARMUP) |
					    (o->check ? PACKET_SUMMED : 0)),
			.flow = (uint16_t)b->flow,
			.length = (uint16_t)b->bufs[i].length,
			.stream = o->stream,
			.sequence = sequence + i,
		};
		if (o->check)
			p->payload_sum =
				packet_fill(b->bufs[i].data, b->bufs[i].length, p->sequence);
	}
}

/* The port takes packets again, or they are no longer worth sending. */
static void end_wait(struct sender *s, uint64_t now)
{
	if (s->full_since_ns)
		s->full_ns += now - s->full_since_ns;
	s->full_since_ns = 0;
}

static void sent(struct sender *s, struct batch *b, unsigned n, uint64_t now)
{
	end_wait(s, now);
	for (unsigned i = b->done; i < b->done + n && s->measuring; i++) {
		s->sent_bytes += b->bufs[i].length + s->run->options->headers;
		if (paced(s)) {
			histogram_add(&s->lateness, now - b->due);
			if (s->run->options->interval_ns)
				histogram_add(&s->lateness_interval, now - b->due);
		}
	}
	if (s->measuring)
		s->ended_ns = now;
	account(s, n, true);
	schedule_pass(&s->schedule, n);
	b->done += n;
}

/*
 * The port is full: wait for it, but no longer than the catch-up bound allows. Returns 0 to try
 * again, -EAGAIN after that time, -errno.
 */
static int wait_for_room(struct sender *s, const struct batch *b)
{
	struct run *run = s->run;
	uint64_t now = clock_now();

	if (s->measuring) {
		s->full++;
		s->full_since_ns = s->full_since_ns ? s->full_since_ns : now;
	}
	run_service(run, now);
	if (run->error)
		return run->error;
	if (run_stopped() || now >= b->deadline) {
		end_wait(s, now);
		return -EAGAIN;
	}
	if (run->meanwhile) {
		run->meanwhile(run->meanwhile_of);
		return run->error;
	}
	if (run->options->busy) {
		clock_relax();
		return 0;
	}
	return run->io->ops->wait(run->io, IO_TX,
				  b->deadline < now + NS_PER_MS ? b->deadline : now + NS_PER_MS);
}

static bool fatal(int error)
{
	return error != -ECONNREFUSED && error != -EHOSTUNREACH && error != -EHOSTDOWN;
}

static int send_batch(struct sender *s, struct batch *b)
{
	struct io *io = s->run->io;
	unsigned refusals = 0;

	fill(s, b);
	while (b->done < b->n) {
		uint64_t now = stamp(b, paced(s));
		int ret = io->ops->send(io, b->flow, b->bufs + b->done, b->n - b->done);

		if (ret > 0) {
			sent(s, b, (unsigned)ret, now);
			continue;
		}
		if (ret < 0) {
			s->errors++;
			ret = fatal(ret) || refusals++ > REFUSALS ? ret : 0;
		} else {
			ret = wait_for_room(s, b);
		}
		if (ret < 0) {
			io->ops->discard(io, b->bufs + b->done, b->n - b->done);
			return ret;
		}
	}
	return 0;
}

/*
 * Get buffers for up to n packets and send them. Returns how many are settled, or -errno; -EAGAIN:
 * it is too late for the rest.
 */
static int send_some(struct sender *s, struct batch *b, uint32_t n)
{
	struct io *io = s->run->io;
	int ret;

	b->done = 0;
	b->n = n < IO_BATCH ? n : IO_BATCH;
	for (unsigned i = 0; i < b->n; i++)
		b->bufs[i].length = schedule_size(&s->schedule, s->schedule.packets + i) -
				    s->run->options->headers;
	b->n = io->ops->alloc(io, b->flow, b->bufs, b->n);
	ret = b->n ? send_batch(s, b) : wait_for_room(s, b);
	return ret < 0 && b->done == 0 ? ret : (int)b->done;
}

int sender_burst(struct sender *s)
{
	const struct options *o = s->run->options;
	uint64_t now = clock_now();
	uint32_t left = due_now(s);
	struct batch b;

	b.flow = (unsigned)(s->bursts++ % o->flows);
	b.due = paced(s) ? schedule_due(&s->schedule) : now;
	b.deadline = UINT64_MAX;
	if (paced(s))
		b.deadline = b.due + o->catch_up_ns;
	else if (s->measuring && o->duration_ns)
		b.deadline =
			s->started_ns + o->duration_ns; /* even if the port accepts nothing more */
	while (left > 0 && now <= b.deadline) {
		int ret = send_some(s, &b, left);

		if (ret == -EAGAIN)
			break;
		if (ret < 0)
			return ret;
		left -= (uint32_t)ret;
		now = clock_now();
	}
	if (left > 0 && paced(s)) {
		account(s, left, false);
		schedule_pass(&s->schedule, left);
	}
	return 0;
}

/* One end packet. Returns whether the port took it. */
static bool say_end(struct sender *s)
{
	const struct options *o = s->run->options;
	struct io *io = s->run->io;
	struct batch b = {.n = 1};

	b.bufs[0].length = PACKET_HEADER;
	if (io->ops->alloc(io, 0, b.bufs, 1) != 1)
		return false;
	b.packets[0] = (struct packet){.type = PACKET_END,
				       .length = (uint16_t)b.bufs[0].length,
				       .stream = o->stream,
				       .sequence = s->sent};
	if (o->check) {
		b.packets[0].flags = PACKET_SUMMED;
		b.packets[0].payload_sum = packet_fill(b.bufs[0].data, b.bufs[0].length, s->sent);
	}
	(void)stamp(&b, false);
	if (io->ops->send(io, 0, b.bufs, 1) == 1)
		return true;
	io->ops->discard(io, b.bufs, 1);
	return false;
}

/*
 * Retry only the first until the port takes it: a receiver that has seen it may be gone by the
 * next.
 */
void sender_finish(struct sender *s)
{
	uint64_t give_up = clock_now() + END_NS;

	while (!say_end(s)) {
		if (clock_now() > give_up)
			return;
		run_service(s->run, clock_now());
		io_sleep(clock_now() + NS_PER_MS);
	}
	for (unsigned again = 0; again + 1 < ENDS; again++) {
		uint64_t due = clock_now() + (NS_PER_MS << again);

		while (clock_now() < due)
			io_sleep(due);
		run_service(s->run, due);
		(void)say_end(s);
	}
}

static void write_how(const struct sender *s, struct json *j)
{
	const struct options *o = s->run->options;
	char size[16];

	snprintf(size, sizeof(size), "%u", o->size);
	json_string(j, "to", o->to_text ? o->to_text : "");
	json_u64(j, "stream", o->stream);
	json_u64(j, "flows", o->flows);
	json_string(j, "size", o->imix ? "imix" : size);
	json_string(j, "rate", o->rate_text);
	json_string(j, "layer", o->layer_text);
	json_u64(j, "burst", s->schedule.burst);
	json_u64(j, "interval_ns", schedule_interval(&s->schedule));
	json_u64(j, "granularity_ns", o->granularity_ns);
	json_bool(j, "busy", o->busy);
}

void sender_write(struct sender *s, struct json *j)
{
	uint64_t elapsed = s->ended_ns - s->started_ns;
	double seconds = (double)elapsed / (double)NS_PER_SECOND;

	write_how(s, j);
	json_u64(j, "started_ns", s->started_ns);
	json_u64(j, "ended_ns", s->ended_ns);
	json_u64(j, "elapsed_ns", elapsed);
	json_u64(j, "warmup", s->warmup_sent);
	json_u64(j, "scheduled", s->scheduled);
	json_u64(j, "sent", s->sent);
	json_u64(j, "sent_bytes", s->sent_bytes);
	json_u64(j, "unsent", s->unsent);
	json_u64(j, "send_errors", s->errors);
	json_u64(j, "full", s->full);
	json_u64(j, "full_ns", s->full_ns);
	json_double(j, "send_pps", seconds > 0 ? (double)s->sent / seconds : 0);
	json_double(j, "send_bps", seconds > 0 ? 8 * (double)s->sent_bytes / seconds : 0);
	json_histogram(j, "lateness", &s->lateness, true);
}

void sender_write_interval(struct sender *s, struct json *j)
{
	struct run *run = s->run;

	json_u64(j, "sent", s->sent - run->last_sent);
	json_u64(j, "unsent", s->unsent - run->last_unsent);
	json_histogram(j, "lateness", &s->lateness_interval, false);
	histogram_clear(&s->lateness_interval);
	run->last_sent = s->sent;
	run->last_unsent = s->unsent;
}
