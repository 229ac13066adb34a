/* Calls the kernels of libraries `one` and `two`; prints what it finds. Compiled as C99 and as C++. */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "one.h"
#include "two.h"

static DLTensor tensor(void *data, int32_t ndim, int64_t *shape, uint8_t code, uint8_t bits) {
    DLTensor made;
    memset(&made, 0, sizeof made);
    made.data = data;
    made.device.device_type = kDLCPU;
    made.ndim = ndim;
    made.shape = shape;
    made.dtype.code = code;
    made.dtype.bits = bits;
    made.dtype.lanes = 1;
    return made;
}

static int32_t scale(int32_t *a, int32_t *b, int64_t k, int32_t *c, int64_t rows, int64_t columns, char *message) {
    int64_t matrix[2], row[1];
    DLTensor A, B, K, C;
    const DLTensor *args[4];
    matrix[0] = rows;
    matrix[1] = row[0] = columns;
    A = tensor(a, 2, matrix, 0, 32);
    B = tensor(b, 1, row, 0, 32);
    K = tensor(&k, 0, NULL, 0, 64);
    C = tensor(c, 2, matrix, 0, 32);
    args[0] = &A;
    args[1] = &B;
    args[2] = &K;
    args[3] = &C;
    return one_scale(args, 4, message, 200);
}

static int64_t sum(const int32_t *values, int count) {
    int64_t total = 0;
    int i;
    for (i = 0; i < count; ++i) total += values[i];
    return total;
}

static int32_t backwards(void *context, one_body body, void *env, int64_t begin) {
    int32_t status = 0;
    int64_t i;
    for (i = begin; i-- > 0 && status == 0;) status = body(env, i, i + 1);
    *(int64_t *)context += begin;
    return status;
}

int main(void) {
    static int32_t a[1000 * 40], b[40], c[1000 * 40];
    float v[8], w[8];
    uint16_t halves[4], results[4];
    char message[200] = "no message";
    int64_t launched = 0;
    int i, answer;
    for (i = 0; i < 1000 * 40; ++i) a[i] = i % 97;
    for (i = 0; i < 40; ++i) b[i] = i;

    printf("threads set: %d", (int)one_set_num_threads(3));
    printf(", refused: %d", (int)one_set_num_threads(0));
    printf(", now %d\n", (int)one_get_num_threads());
    answer = scale(a, b, 2, c, 1000, 40, message);
    printf("scale: %d %s %lld %lld\n", answer, message, (long long)sum(a, 40000), (long long)sum(c, 40000));
    answer = scale(a, b, 200, c, 1000, 40, message);
    printf("refused: %d %s\n", answer, message);
    answer = scale(a, b, 2, a + 40, 100, 40, message);
    printf("refused: %d %s\n", answer, message);

    one_set_launcher(backwards, &launched);
    memset(c, 0, sizeof c);
    answer = scale(a, b, 3, c, 1000, 40, message);
    printf("launched: %d %lld %lld\n", answer, (long long)launched, (long long)sum(c, 40000));
    one_set_launcher(NULL, NULL);

    fflush(stdout);
    if (fork() == 0) { /* the child has no threads and makes new ones */
        memset(c, 0, sizeof c);
        answer = scale(a, b, 2, c, 1000, 40, message);
        printf("child: %d %lld of %d\n", answer, (long long)sum(c, 40000), (int)one_get_num_threads());
        fflush(stdout);
        _exit(answer);
    }
    wait(&answer);
    printf("ended: %d\n", answer);

    for (i = 0; i < 8; ++i) v[i] = (float)i;
    printf("raw: %d", (int)two_add_raw(v, v, w));
    printf(" %g %g\n", w[1], w[7]);
    for (i = 0; i < 4; ++i) halves[i] = 0; /* exp(0) * 0.5 */
    printf("halves: %d", (int)one_halves_raw_compact(halves, results, 4, 0.5f));
    printf(" %x\n", results[3]);
    {
        float numbers[5];
        int64_t found = 0;
        for (i = 0; i < 5; ++i) numbers[i] = (float)(i * i);
        printf("first: %d", (int)one_first_above_raw_compact(numbers, 5, 5.0f, &found));
        printf(" %lld, asserted: %d\n", (long long)found, one_first_above_raw(numbers, 5, 1, -1.0f, &found) >= ONE_ASSERTION);
    }
    return 0;
}
