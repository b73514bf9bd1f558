/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz the functions. The first byte says which, on which port, and whether checksums are put right
 * before; then come frames of two bytes of length and what follows. Or it says that an answer of
 * Redis follows. What must hold: nothing is read beyond the copied headers, nothing depends on the
 * frame once they are copied, what leaves is within what came and within the MTU, is what a
 * receiver takes, and from one end of a tunnel comes out at the other.
 */
#include <stddef.h>
#include <stdlib.h>

#include "checksum.h"
#include "function.h"
#include "ip4.h"

#define PORTS 2u
#define FRAME 2048u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct function bng, upf, gnb, plain, l3fwd, l2fwd, lb, session;

static void must(int condition)
{
	if (!condition)
		abort();
}

static struct function make(enum mode mode, bool is_gnb, bool is_plain)
{
	struct function f = {.mode = mode, .ports = PORTS};

	static const struct keep_options keep = {.sessions = 4, .idle_ns = 1};

	for (unsigned i = 0; i < PORTS; i++) {
		f.port[i] = (struct port_setup){.mac = {2, 0, 0, 0, 1, (uint8_t)i},
						.next = {2, 0, 0, 0, 2, (uint8_t)i},
						.mtu = 1500};
		f.port[i].ip = 0xc6120001u + i * 256 + is_gnb;
		f.port[i].peer = 0xc6120001u + i * 256 + !is_gnb;
	}
	if (mode == MODE_BNG) {
		f.bng = (struct bng){.svlans = 128, .svlan_base = 1, .cvlan_base = 1, .label = 3};
		must(bng_open(&f.bng, PORTS) == 0);
	}
	if (mode == MODE_SESSION) {
		f.keep = keep_open(&keep);
		must(f.keep != NULL);
	}
	if (mode == MODE_GTPU) {
		f.gtpu = (struct gtpu){.gnb = is_gnb,
				       .plain = is_plain,
				       .count = 2,
				       .sessions = calloc(2, sizeof(struct session))};
		must(f.gtpu.sessions != NULL);
		for (unsigned i = 0; i < 2; i++)
			f.gtpu.sessions[i] = (struct session){.ue = 0x0a3c0001u + i,
							      .here = 1 + i,
							      .there = 1 + i,
							      .peer = f.port[0].peer,
							      .qfi = 9};
		must(gtpu_open(&f.gtpu) == 0);
	}
	return f;
}

static void put_right(uint8_t *frame, uint32_t length, uint32_t offset)
{
	uint32_t header;

	if (length < offset + IP4)
		return;
	header = (frame[offset] & 15u) * 4;
	if (header < IP4 || length < offset + header)
		return;
	put16(frame + offset + 10, 0);
	put16(frame + offset + 10, checksum_fold(checksum_add(0, frame + offset, header)));
}

/*
 * If the functions expect headers without options; the inner one first, since nothing covers it.
 */
static void put_all_right(const struct function *f, unsigned in, uint8_t *frame, uint32_t length)
{
	uint32_t outer = f->mode != MODE_BNG ? ETHERNET : in ? ETHERNET + TAG : ETHERNET + 2 * TAG;

	if (f->mode == MODE_BNG && in)
		put_right(frame, length, outer + IP4 + 8);
	if (f->mode == MODE_GTPU && !in)
		put_right(frame, length,
			  outer + IP4 + UDP + (length > 42 && frame[42] & 7 ? 16 : 8));
	put_right(frame, length, outer);
}

/* With no byte more than was copied, so that what reads beyond is noticed. */
static struct packet *take(const struct function *f, unsigned in, const uint8_t *frame,
			   uint32_t length)
{
	uint32_t want = function_snapshot(f->mode), have = length < want ? length : want;
	struct packet *p = malloc(offsetof(struct packet, head) + have), whole;

	must(p != NULL);
	packet_take(&whole, frame, length, in, want);
	must(whole.have == have);
	memcpy(p, &whole, offsetof(struct packet, head) + have);
	return p;
}

static uint32_t apply(const struct change *c, const uint8_t *frame, uint32_t length, uint8_t *to)
{
	must(c->push <= FRONT_MAX && c->l2 <= c->push && c->strip <= length &&
	     c->keep <= length - c->strip && c->out < PORTS);
	memcpy(to, c->front, c->push);
	memcpy(to + c->push, frame + c->strip, c->keep);
	return c->push + c->keep;
}

/* What a tunnel's near end sent, its far end takes. */
static void through_tunnel(const struct function *f, unsigned in, uint8_t *frame, uint32_t length)
{
	const struct function *far = f == &upf ? &gnb : f == &gnb ? &upf : NULL;
	struct change c = {0};
	struct packet *p;
	enum reason reason;

	if (!far || in == 0)
		return;
	p = take(far, 0, frame, length);
	reason = function_handle(far, p, &c);
	must(reason == PASS || (reason == DROP_TTL && far == &upf) ||
	     (reason == DROP_ADDRESS && far == &upf));
	free(p);
}

static void check_sent(const struct function *f, unsigned in, const struct change *c,
		       const uint8_t *frame, uint32_t length)
{
	uint8_t *out = malloc(FRONT_MAX + FRAME);
	uint32_t n;
	struct ip4 ip;

	must(out != NULL);
	n = apply(c, frame, length, out);
	if (f->mode != MODE_L2FWD && f->mode != MODE_LB && f->mode != MODE_SESSION &&
	    c->reply == REPLY_NONE) {
		struct packet *p = take(f, 1, out, n);

		must(n - c->l2 <= 1500);
		must(ip4_read(p, f->mode == MODE_BNG && c->out == 1 ? c->l2 + TAG : c->l2, n,
			      &ip) == PASS);
		free(p);
		through_tunnel(f, in, out, n);
	}
	free(out);
}

static void one(struct function *f, unsigned in, const uint8_t *data, uint32_t length, bool right)
{
	static const struct hop hop = {.port = 1, .mac = {2, 0, 0, 0, 2, 1}};
	uint8_t *frame = malloc(length + 1), *later = malloc(length + 1);
	struct change c = {0}, again = {0};
	enum reason reason;
	struct packet *p;

	must(frame && later);
	memcpy(frame, data, length);
	if (right)
		put_all_right(f, in, frame, length);
	memset(later, 0x5a, length);
	p = take(f, in, frame, length);
	reason = function_handle(f, p, &c);
	if (length <= SNAPSHOT) { /* a checksum over more is the frame's own */
		p->frame = later;
		must(function_handle(f, p, &again) == reason && memcmp(&c, &again, sizeof(c)) == 0);
	}
	must(function_worker(f, p, 3) < 3 && function_worker(f, p, 1) == 0);
	if (f->mode == MODE_L3FWD && reason == PASS && c.reply == REPLY_NONE)
		reason = l3fwd_route(f->port, c.destination & 1 ? &hop : NULL, &c);
	must(reason < REASON_COUNT);
	if (reason == PASS)
		check_sent(f, in, &c, frame, length);
	free(p);
	free(frame);
	free(later);
}

/* What Redis answers. An error is read up to the first byte that is no letter, so there is one. */
static void answer(const uint8_t *data, uint32_t bytes, unsigned n)
{
	struct script_answer answers[16];
	char *copy = malloc(bytes ? bytes : 1);
	const char *error = NULL;
	int ret;

	must(copy != NULL);
	memcpy(copy, data, bytes);
	ret = script_parse(copy, bytes, n, answers, &error);
	must(ret || bytes < SCRIPT_IN);
	must((ret < 0) == (error != NULL));
	must(!error || error < copy || error > copy + bytes ||
	     memchr(error, '\n', (size_t)(copy + bytes - error)) != NULL);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct function *all[] = {&bng, &upf, &gnb, &plain, &l3fwd, &l2fwd, &lb, &session};
	uint8_t how;

	if (!bng.ports) {
		bng = make(MODE_BNG, false, false);
		upf = make(MODE_GTPU, false, false);
		gnb = make(MODE_GTPU, true, false);
		plain = make(MODE_GTPU, false, true);
		l3fwd = make(MODE_L3FWD, false, false);
		l2fwd = make(MODE_L2FWD, false, false);
		lb = make(MODE_LB, false, false);
		must(lb_open(&lb.lb, false, 1) == 0);
		lb_first(&lb.lb, 2);
		session = make(MODE_SESSION, false, false);
	}
	if (size == 0)
		return 0;
	how = *data++;
	size--;
	if (how & 0x40) {
		answer(data, size < SCRIPT_IN ? (uint32_t)size : SCRIPT_IN, 1 + (how & 15));
		return 0;
	}
	while (size >= 2) {
		uint32_t length = (data[0] | (uint32_t)data[1] << 8) % FRAME;

		data += 2;
		size -= 2;
		length = length < size ? length : (uint32_t)size;
		one(all[how & 7], how >> 4 & 1, data, length, how >> 5 & 1);
		data += length;
		size -= length;
	}
	return 0;
}
