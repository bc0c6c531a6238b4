/* libb64, which perf_analyzer is linked with and which few systems have: the functions of its interface that perf_analyzer
   calls, base64 without line breaks. */

typedef struct {
    int step;
    char result;
    int stepcount;
} base64_encodestate;

typedef struct {
    int step;
    char plainchar;
} base64_decodestate;

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_init_encodestate(base64_encodestate *state) {
    state->step = 0;
    state->result = 0;
    state->stepcount = 0;
}

/* `step` bytes of a group of three have been read; `result` has the bits of them that are not written. */
int base64_encode_block(const char *plain, int length, char *code, base64_encodestate *state) {
    char *out = code;
    for (int i = 0; i < length; i++) {
        unsigned bits = (unsigned)state->result << 8 | (unsigned char)plain[i];
        int left = 2 * (state->step + 1);
        *out++ = DIGITS[bits >> left & 63];
        if (left == 6) {
            *out++ = DIGITS[bits & 63];
        }
        state->result = (char)(bits & ((1u << left % 6) - 1));
        state->step = (state->step + 1) % 3;
    }
    return (int)(out - code);
}

int base64_encode_blockend(char *code, base64_encodestate *state) {
    char *out = code;
    if (state->step > 0) {
        *out++ = DIGITS[(unsigned)state->result << (6 - 2 * state->step) & 63];
        for (int i = state->step; i < 3; i++) {
            *out++ = '=';
        }
    }
    *out++ = '\n';
    return (int)(out - code);
}

void base64_init_decodestate(base64_decodestate *state) {
    state->step = 0;
    state->plainchar = 0;
}

/* Characters that are not digits are skipped. `step` digits of a group of four have been read. */
int base64_decode_block(const char *code, const int length, char *plain, base64_decodestate *state) {
    char *out = plain;
    for (int i = 0; i < length; i++) {
        int digit = 0;
        while (digit < 64 && DIGITS[digit] != code[i]) {
            digit++;
        }
        if (digit == 64) {
            continue;
        }
        unsigned bits = (unsigned)(unsigned char)state->plainchar << 6 | (unsigned)digit;
        int left = (6 - 2 * state->step) % 8;
        if (state->step > 0) {
            *out++ = (char)(bits >> left);
        }
        state->plainchar = (char)(bits & ((1u << left) - 1));
        state->step = (state->step + 1) % 4;
    }
    return (int)(out - plain);
}
