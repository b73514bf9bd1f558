/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The store against a server that is slow, silent, gone, or answers anything: nothing waits for it,
 * and no packet counts twice or is forgotten.
 */
#include "store.h"

#include <errno.h>
#include <sys/un.h>
#include <unistd.h>

#include "files.h"
#include "flows.h"

#define LAG 10u
#define SECOND 1000000000u

static struct track t;
static struct store s;
static char path[64];
static int listener, peer = -1;
static char request[SCRIPT_OUT + 1];

static void turn(uint64_t now)
{
	t.now_ns = now;
	store_turn(&s, &t, false);
}

static void packet(unsigned flow)
{
	struct packet p;

	flow_packet(&p, flow, false);
	track_packet(&t, &p);
}

static void begin(void)
{
	struct store_address to;
	char address[80];

	snprintf(address, sizeof(address), "unix:%s", path);
	CHECK(store_address_read(address, &to));
	CHECK_EQ(store_open(&s, &to, LAG, 300ull * SECOND), 0);
	CHECK_EQ(track_open(&t, 1000, 300ull * SECOND, true), 0);
}

static void end(void)
{
	store_close(&s);
	track_close(&t);
	close(peer);
}

static void accept_one(void)
{
	peer = accept(listener, NULL, NULL);
	CHECK(peer >= 0);
}

/* All that came so far. */
static const char *came(void)
{
	ssize_t n = recv(peer, request, SCRIPT_OUT, MSG_DONTWAIT);

	CHECK(n >= 0 || errno == EAGAIN);
	request[n > 0 ? n : 0] = '\0';
	return request;
}

static void answer(const char *text)
{
	CHECK_EQ(send(peer, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* A string of Redis. */
static void answer_string(const char *text)
{
	char all[SCRIPT_IN];

	snprintf(all, sizeof(all), "$%zu\r\n%s\r\n", strlen(text), text);
	answer(all);
}

static void test_lag(void)
{
	char created[64];

	begin();
	turn(1);
	accept_one();
	turn(2);
	CHECK_EQ(s.counts.connected, 1);
	packet(5);
	packet(5);
	turn(2 + LAG - 1);
	CHECK(*came() == '\0');
	turn(2 + LAG);
	CHECK(strstr(came(), "*10\r\n$4\r\nEVAL\r\n") == request);
	CHECK(strstr(request,
		     "\r\nsession:udp:10.0.0.1/5-10.0.0.2/443\r\n$1\r\n1\r\n$3\r\n300\r\n"));
	CHECK(strstr(request, "\r\n$1\r\n2\r\n$3\r\n120\r\n"));
	packet(5); /* meanwhile; not part of what was sent */
	snprintf(created, sizeof(created), "%016llx 2", (unsigned long long)t.all[t.queue[0]].id);
	answer_string(created);
	turn(20);
	CHECK_EQ(t.counts.created, 1);
	CHECK_EQ(s.counts.packets, 2);
	CHECK_EQ(s.counts.lag_ns, 20 - 2);
	CHECK(!store_has_all(&s, &t));
	turn(30);
	CHECK(strstr(came(), "\r\n$1\r\n1\r\n$2\r\n60\r\n"));
	snprintf(created, sizeof(created), "%016llx 1", (unsigned long long)t.all[t.queue[0]].id);
	answer_string(created); /* fewer than it had: Redis lost something */
	turn(40);
	CHECK_EQ(s.counts.regressed, 1);
	CHECK(store_has_all(&s, &t));
	end();
}

static void test_resumed(void)
{
	begin();
	turn(1);
	accept_one();
	packet(1);
	packet(2);
	packet(3);
	turn(2 + LAG);
	CHECK(*came() == '*');
	answer_string("00000000000000aa 1000 00000000000000bb 1 0 0");
	turn(50);
	CHECK_EQ(t.counts.resumed, 2);
	CHECK_EQ(s.counts.refused, 1);
	CHECK_EQ(s.counts.packets, 2);
	CHECK_EQ(t.all[t.queue[0]].total, 1000);
	CHECK(store_has_all(&s, &t));
	end();
}

/* After each of these the same batch is sent again, on another connection. */
static void test_wrong_answers(void)
{
	static const char *const wrong[] = {
		"-ERR no\r\n",
		"+OK\r\n",
		":1\r\n",
		"*1000000000\r\n",
		"$-1\r\n",
		"$99999999999999999999\r\n",
		"$100000\r\n",
		"\r\n",
		"$0\r\n\r\n",
		"$4\r\naa 1\r\n$4\r\n",
		"$4\r\naa 1XX",
		"$5\r\naa  1\r\n",
		"$4\r\naa x\r\n",
		"$9\r\naa 1 bb 2\r\n",
		"$4\r\nAA 1\r\n",
		"$23\r\naa 99999999999999999999\r\n",
		"$22\r\n11111111111111111111 1\r\n",
	};
	uint64_t now = 100;
	char first[sizeof(request)];

	begin();
	turn(now);
	accept_one();
	packet(1);
	turn(now += LAG);
	strcpy(first, came());
	CHECK(*first == '*');
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		answer(wrong[i]);
		turn(now += LAG);
		CHECK_EQ(s.counts.errors, i + 1);
		CHECK_EQ(s.counts.connected, 0);
		turn(now += SECOND / 20); /* not yet */
		CHECK_EQ(s.fd, -1);
		packet(1);
		turn(now += SECOND / 10);
		close(peer);
		accept_one();
		turn(now += LAG);
		CHECK(strcmp(came(), first) == 0);
	}
	CHECK_EQ(s.counts.packets, 0);
	answer_string("00000000000000aa 1");
	turn(now += LAG);
	CHECK_EQ(s.counts.packets, 1);
	CHECK_EQ(t.counts.packets, 1 + sizeof(wrong) / sizeof(*wrong));
	end();
}

/* A line without an end does not fill the memory; one that comes byte by byte is read. */
static void test_slow_answers(void)
{
	static const char whole[] = "$4\r\naa 1\r\n";
	static char line[SCRIPT_IN + 10];

	begin();
	turn(1);
	accept_one();
	packet(1);
	turn(1 + LAG);
	for (const char *c = whole; *c; c++) {
		CHECK_EQ(s.counts.packets, 0);
		CHECK_EQ(send(peer, c, 1, 0), 1);
		turn(30);
	}
	CHECK_EQ(s.counts.packets, 1);
	packet(1);
	turn(30 + LAG);
	memset(line, '7', sizeof(line));
	CHECK_EQ(send(peer, line, sizeof(line), 0), sizeof(line));
	turn(50);
	CHECK_EQ(s.counts.errors, 1);
	end();
}

static void test_silent(void)
{
	begin();
	turn(1);
	accept_one();
	packet(1);
	turn(1 + LAG);
	turn(SECOND);
	CHECK_EQ(s.counts.errors, 0);
	turn(SECOND + LAG + 2);
	CHECK_EQ(s.counts.errors, 1);
	turn(SECOND + SECOND / 5); /* there is one who waits in the queue of the listener */
	CHECK_EQ(s.counts.connects, 2);
	close(peer);
	accept_one();
	answer("$1\r\nx\r\n"); /* after the question is asked again; before, it would be an error,
				  too */
	turn(SECOND + SECOND / 5 + 1);
	CHECK_EQ(s.counts.errors, 2);
	end();
}

/* Nobody listens: packets are counted, and that is all. */
static void test_absent(void)
{
	struct store_address to;

	begin();
	store_close(&s);
	CHECK(store_address_read("unix:/nonexistent/redis", &to));
	CHECK_EQ(store_open(&s, &to, LAG, SECOND), 0);
	for (uint64_t now = 1; now < 10ull * SECOND; now += SECOND / 4) {
		packet(1);
		turn(now);
	}
	CHECK_EQ(s.counts.errors, 40);
	CHECK_EQ(s.counts.packets, 0);
	CHECK_EQ(t.counts.packets, 40);
	CHECK(!store_has_all(&s, &t));
	end();
}

static void test_many(void)
{
	begin();
	turn(1);
	accept_one();
	for (unsigned i = 0; i < 2 * SCRIPT_BATCH + 1; i++)
		packet(i);
	turn(1 + LAG);
	CHECK_EQ(s.n, SCRIPT_BATCH);
	CHECK(s.request.bytes < SCRIPT_OUT / 2);
	CHECK_EQ(s.sent, s.request.bytes);
	end();
}

static void test_addresses(void)
{
	static const char *const good[] = {"192.0.2.1:6379", "[2001:db8::1]:1", "2001:db8::1:6379",
					   "unix:/run/redis"};
	static const char *const bad[] = {
		"",	 "192.0.2.1", "192.0.2.1:0", "192.0.2.1:65536", "redis:6379",
		":6379", "[]:6379",   "unix:",	     "[192.0.2.1:1",	"1.2.3.4:6379x"};
	struct store_address to;

	for (unsigned i = 0; i < sizeof(good) / sizeof(*good); i++)
		CHECK(store_address_read(good[i], &to) && to.length);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(!store_address_read(bad[i], &to));
}

int main(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(path, sizeof(path), "/tmp/dray-vnf-store-%d", (int)getpid());
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(listener >= 0);
	CHECK_EQ(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	CHECK_EQ(listen(listener, 8), 0);
	test_lag();
	test_resumed();
	test_wrong_answers();
	test_slow_answers();
	test_silent();
	test_absent();
	test_many();
	test_addresses();
	unlink(path);
	return 0;
}
