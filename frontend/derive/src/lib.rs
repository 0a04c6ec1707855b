//! `#[derive(Module)]` and `#[forward]` for models written in Rust (`tgc_frontend::nn`). Nothing here knows a layer.

use proc_macro::TokenStream;
use proc_macro2::TokenStream as Tokens;
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Field, Fields, FnArg, ImplItemFn, LitStr, Stmt, parse_macro_input, parse_quote,
};

/// Implements `Module` by visiting every field under its name. `#[module(skip)]` leaves a field out,
/// `#[module(name = "key")]` gives it another name in the state dict.
#[proc_macro_derive(Module, attributes(module))]
pub fn module(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Where the traits are: in this crate's user, or in the library itself.
fn library() -> Tokens {
    quote!(::tgc_frontend::nn)
}

fn expand(input: &DeriveInput) -> syn::Result<Tokens> {
    let name = &input.ident;
    let nn = library();
    let body = match &input.data {
        Data::Struct(s) => {
            let visits = visits(&s.fields, |f, i| match &f.ident {
                Some(id) => quote_spanned!(f.span()=> &self.#id),
                None => {
                    let i = syn::Index::from(i);
                    quote_spanned!(f.span()=> &self.#i)
                }
            })?;
            quote!(#(#visits)*)
        }
        Data::Enum(e) => {
            let mut arms = Vec::new();
            for v in &e.variants {
                let variant = &v.ident;
                let bound = |f: &Field, i: usize| f.ident.clone().unwrap_or_else(|| format_ident!("f{i}"));
                let names: Vec<_> = v.fields.iter().enumerate().map(|(i, f)| bound(f, i)).collect();
                let visits = visits(&v.fields, |f, i| bound(f, i).to_token_stream())?;
                let pattern = match &v.fields {
                    Fields::Named(_) => quote!({ #(#names),* }),
                    Fields::Unnamed(_) => quote!(( #(#names),* )),
                    Fields::Unit => quote!(),
                };
                arms.push(quote!(#[allow(unused_variables)] Self::#variant #pattern => { #(#visits)* }));
            }
            quote!(match self { #(#arms)* })
        }
        Data::Union(_) => {
            return Err(syn::Error::new(name.span(), "a union has no modules: use a struct or an enum"));
        }
    };
    let mut generics = input.generics.clone();
    for p in input.generics.type_params() {
        let id = &p.ident;
        generics.make_where_clause().predicates.push(parse_quote!(#id: #nn::Module));
    }
    let (params, args, bounds) = generics.split_for_impl();
    let (_, plain, _) = input.generics.split_for_impl();
    let _ = args;
    Ok(quote! {
        #[automatically_derived]
        impl #params #nn::Module for #name #plain #bounds {
            #[allow(unused_variables)]
            fn visit(&self, v: &mut #nn::Visitor<'_>) {
                #body
            }
        }
    })
}

fn visits(fields: &Fields, access: impl Fn(&Field, usize) -> Tokens) -> syn::Result<Vec<Tokens>> {
    let mut out = Vec::new();
    for (i, f) in fields.iter().enumerate() {
        let mut key = match &f.ident {
            Some(id) => id.to_string().trim_start_matches("r#").to_string(),
            None => i.to_string(),
        };
        let mut skip = false;
        for a in f.attrs.iter().filter(|a| a.path().is_ident("module")) {
            a.parse_nested_meta(|meta| {
                if meta.path.is_ident("skip") {
                    skip = true;
                    Ok(())
                } else if meta.path.is_ident("name") {
                    key = meta.value()?.parse::<LitStr>()?.value();
                    Ok(())
                } else {
                    Err(meta.error("unknown; there are `skip` and `name = \"key\"`"))
                }
            })?;
        }
        if skip {
            continue;
        }
        let at = access(f, i);
        out.push(quote_spanned!(f.span()=> v.child(#key, #at);));
    }
    Ok(out)
}

/// Marks a method as a module's forward pass: what happens in it is named after the module.
#[proc_macro_attribute]
pub fn forward(attr: TokenStream, item: TokenStream) -> TokenStream {
    let mut f = parse_macro_input!(item as ImplItemFn);
    if !attr.is_empty() {
        return syn::Error::new(f.sig.span(), "#[forward] takes no arguments").into_compile_error().into();
    }
    if !matches!(f.sig.inputs.first(), Some(FnArg::Receiver(_))) {
        return syn::Error::new(f.sig.span(), "#[forward] is for methods: the first argument must be &self")
            .into_compile_error()
            .into();
    }
    let nn = library();
    let enter: Stmt = parse_quote!(let _entered = #nn::enter(self););
    f.block.stmts.insert(0, enter);
    f.into_token_stream().into()
}
