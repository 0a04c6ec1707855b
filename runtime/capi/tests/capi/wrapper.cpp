// The header from C++: resources in smart pointers, a failure as an exception.
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.h"

namespace {

void must(tgc_status status) {
    if (status != TGC_OK) throw std::runtime_error(tgc_last_error());
}

struct Close {
    void operator()(tgc_model *model) const { tgc_model_close(model); }
    void operator()(tgc_session *session) const { tgc_session_close(session); }
};

std::vector<std::int64_t> run(tgc_session *session, const std::vector<std::int64_t> &x) {
    const std::int64_t dims[] = {static_cast<std::int64_t>(x.size() / 2), 2};
    const tgc_shape shape = {2, dims};
    must(tgc_session_bind(session, &shape, 1));
    std::vector<std::int64_t> y(x.size());
    const tgc_input in = {x.data(), x.size() * sizeof x[0]};
    const tgc_output out = {y.data(), y.size() * sizeof y[0]};
    must(tgc_session_run(session, &in, 1, &out, 1));
    return y;
}

}  // namespace

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    tgc_model *opened = nullptr;
    must(tgc_model_open((std::string(argv[1]) + "/simple.tgc").c_str(), &opened));
    std::unique_ptr<tgc_model, Close> model(opened);
    tgc_session_options options = TGC_SESSION_OPTIONS_INIT;
    options.threads = 2;
    tgc_session *made = nullptr;
    must(tgc_session_open(model.get(), nullptr, &options, &made));
    std::unique_ptr<tgc_session, Close> session(made);
    CHECK((run(session.get(), {1, 2, 3, 4}) == std::vector<std::int64_t>{4, 6, 8, 10}));
    std::string said;
    try {
        run(session.get(), std::vector<std::int64_t>(130));
    } catch (const std::runtime_error &error) {
        said = error.what();
    }
    CHECK(said.find("axis 0 is 65") != std::string::npos);
    FAILS(TGC_ERROR_INPUT_DIM, TGC_ERROR_INPUT_DIM, "axis 0 is 65");
    GIVES_NOTHING(tgc_dtype_size(99), "no element type 99");
    return finish();
}
